// Seeded mutation of what a receiver of pages is fed: headers, payloads and the
// ledger's state. Every verdict is compared with a naive oracle that reads the
// bytes by their documented offsets; prints how often each refusal was seen.
//
//   handoff_mutation [--seed N] [--inputs N] [--min-hits N]

#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/env/random.h"
#include "common/env/testing/mutation_report.h"
#include "common/model/block_hash.h"
#include "common/transfer/arena_pages.h"
#include "common/transfer/little_endian.h"
#include "common/transfer/page_header.h"
#include "common/transfer/receive_ledger.h"

namespace penstock {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr Incarnation kSelf(0x5EED);
constexpr int kBlocks = 8;
constexpr int kTransfers = 3;

KvLayout SmallLayout() {
  KvLayout layout;
  layout.layers = 4;
  layout.kv_heads = 1;
  layout.head_dim = 4;
  layout.value_dim = 4;
  return layout;
}

// What a source sends, and what the receiver knows before it arrives.
struct Input {
  Bytes header;
  Bytes payload;
  // Open blocks of the ledger, as a naive set.
  std::set<std::pair<TransferId, BlockRef>> open;
  uint64_t last_sequence = 0;
};

constexpr const char* kAccepted = "accepted";

class Driver {
 public:
  explicit Driver(uint64_t seed) : random_(seed) {}

  void Run(uint64_t inputs) {
    for (uint64_t i = 0; i < inputs; ++i) One();
  }

  // The exit status; see MutationReport.
  int Report(uint64_t min_hits) const {
    std::vector<absl::string_view> outcomes = {kAccepted};
    for (int i = 0; i < kPageRefusals; ++i) {
      outcomes.push_back(PageRefusalName(static_cast<PageRefusal>(i)));
    }
    return report_.Print(outcomes, min_hits);
  }

 private:
  void One() {
    ReceiveLedger ledger(kSelf);
    Input input = Valid(ledger);
    for (uint64_t n = random_.Below(3); n > 0; --n) Mutate(input);

    std::optional<PageRefusal> expected = Oracle(input);
    std::optional<PageRefusal> actual = Receive(input, ledger);
    CHECK(actual == expected)
        << (actual ? PageRefusalName(*actual) : "accepted") << ", not "
        << (expected ? PageRefusalName(*expected) : "accepted");
    report_.Count(actual ? PageRefusalName(*actual) : kAccepted);
  }

  TransferId SomeTransfer() {
    uint64_t n = random_.Below(kTransfers);
    return {RequestId(1 + n / 2), AttemptId(1 + n % 2)};
  }

  // A page that the ledger, prepared here at random, will take.
  Input Valid(ReceiveLedger& ledger) {
    Input input;
    for (BlockIndex index = 0; index < kBlocks; ++index) {
      if (random_.Below(4) == 0 && index > 0) continue;
      TransferId transfer = SomeTransfer();
      BlockRef block{index, static_cast<uint32_t>(random_.Below(4))};
      ledger.Prepare(transfer, {block});
      input.open.emplace(transfer, block);
    }
    PageHeader header;
    auto target = input.open.begin();
    std::advance(target, random_.Below(input.open.size()));
    header.transfer = target->first;
    header.block = target->second;
    header.destination = kSelf;
    header.layers.first = random_.Below(layout_.layers);
    header.layers.last = header.layers.first + 1 +
                         random_.Below(layout_.layers - header.layers.first);
    header.payload_bytes =
        layout_.layer_bytes() * (header.layers.last - header.layers.first);
    header.layout = layout_.id();
    input.last_sequence = random_.Below(1000);
    header.sequence = input.last_sequence + 1 + random_.Below(3);
    input.payload.resize(header.payload_bytes);
    for (uint8_t& byte : input.payload) byte = random_.Next();
    header.payload_checksum = hasher_.Checksum(input.payload);
    auto bytes = EncodePageHeader(header, hasher_);
    input.header.assign(bytes.begin(), bytes.end());
    // A fence may have come first.
    if (random_.Below(8) == 0) {
      TransferId revoked = SomeTransfer();
      CHECK(ledger.Revoke(revoked));
      std::erase_if(input.open,
                    [&](const auto& open) { return open.first == revoked; });
    }
    return input;
  }

  void Mutate(Input& input) {
    Bytes& header = input.header;
    if (header.size() < kPageHeaderBytes) return;
    switch (random_.Below(8)) {
      case 0:  // cut short
        header.resize(random_.Below(header.size()));
        break;
      case 1: {  // one bit, anywhere
        uint64_t bit = random_.Below(8 * header.size());
        header[bit / 8] ^= 1 << (bit % 8);
        break;
      }
      case 2:  // one bit of what names the format
        header[random_.Below(8)] ^= 1 << random_.Below(8);
        break;
      case 3:  // one bit of the payload
        if (!input.payload.empty()) {
          input.payload[random_.Below(input.payload.size())] ^=
              1 << random_.Below(8);
        }
        break;
      case 4:  // another cluster's key
        Sign(header, other_);
        break;
      default:  // a member of the cluster that errs
        ChangeField(header);
        Sign(header, hasher_);
        break;
    }
  }

  // Bends one field towards its neighbours or its extremes.
  void ChangeField(Bytes& header) {
    struct Field {
      int at, bytes;
    };
    static constexpr Field kFields[] = {{8, 8},  {16, 4}, {20, 4}, {24, 8},
                                        {32, 4}, {36, 2}, {38, 2}, {40, 8},
                                        {48, 8}, {56, 8}, {64, 8}};
    const Field& field = kFields[random_.Below(std::size(kFields))];
    uint64_t value = 0;
    std::memcpy(&value, &header[field.at], field.bytes);
    switch (random_.Below(6)) {
      case 0:
        value = 0;
        break;
      case 1:
        value = UINT64_MAX;
        break;
      case 2:
        value ^= uint64_t{1} << random_.Below(8 * field.bytes);
        break;
      case 3:
        value += 1 + random_.Below(3);
        break;
      default:
        value -= 1 + random_.Below(3);
        break;
    }
    std::memcpy(&header[field.at], &value, field.bytes);
  }

  static void Sign(Bytes& header, const BlockHasher& hasher) {
    StoreLittleEndian<uint64_t>(
        hasher.Checksum(absl::MakeConstSpan(header).first(72)), &header[72]);
  }

  // The receiving side's steps, as the transports take them.
  std::optional<PageRefusal> Receive(const Input& input,
                                     ReceiveLedger& ledger) {
    absl::StatusOr<PageHeader> header =
        DecodePageHeader(input.header, layout_, hasher_);
    if (!header.ok()) return RefusalOf(header.status());
    ReceiveChannel channel{input.last_sequence};
    if (auto refusal = ledger.BeginLanding(*header, channel)) return refusal;
    // Only an admitted page may address the arena. A stream would deliver the
    // announced length, whatever the source meant to send.
    Bytes payload = input.payload;
    payload.resize(header->payload_bytes);
    auto page = pages_.Page(header->block.index, header->layers);
    size_t at = 0;
    for (absl::Span<uint8_t> piece : page) {
      CHECK(at + piece.size() <= payload.size());
      std::memcpy(piece.data(), &payload[at], piece.size());
      at += piece.size();
    }
    CHECK(at == payload.size());
    uint64_t checksum = hasher_.ChecksumPieces(ReadOnly(page));
    auto end = ledger.EndLanding(header->transfer);
    CHECK(!end.revoked && !end.fenced);
    if (checksum != header->payload_checksum) {
      return PageRefusal::kBadPayloadChecksum;
    }
    return std::nullopt;
  }

  template <typename T>
  static T At(const Bytes& bytes, size_t at) {
    T value;
    std::memcpy(&value, &bytes[at], sizeof(T));
    return value;
  }

  std::optional<PageRefusal> Oracle(const Input& input) const {
    const Bytes& h = input.header;
    if (h.size() < 80) return PageRefusal::kTruncated;
    if (std::string(h.begin(), h.begin() + 4) != "PKVP") {
      return PageRefusal::kBadMagic;
    }
    if (At<uint16_t>(h, 4) != 1) return PageRefusal::kBadVersion;
    if (At<uint16_t>(h, 6) != 80) return PageRefusal::kBadHeaderLength;
    if (At<uint64_t>(h, 72) !=
        hasher_.Checksum(absl::MakeConstSpan(h).first(72))) {
      return PageRefusal::kBadHeaderChecksum;
    }
    if (At<uint64_t>(h, 64) != layout_.id().value()) {
      return PageRefusal::kWrongLayout;
    }
    uint16_t first = At<uint16_t>(h, 36), last = At<uint16_t>(h, 38);
    if (first >= last || last > 4) return PageRefusal::kBadLayerRange;
    // 2 (K and V) * 1 head * 4 values * 16 tokens * 2 bytes a layer.
    if (At<uint64_t>(h, 40) != uint64_t{256} * (last - first)) {
      return PageRefusal::kBadLength;
    }
    return StateOracle(input);
  }

  // What only the receiver's state can say.
  std::optional<PageRefusal> StateOracle(const Input& input) const {
    const Bytes& h = input.header;
    if (At<uint64_t>(h, 24) != kSelf.value()) {
      return PageRefusal::kWrongIncarnation;
    }
    if (At<uint64_t>(h, 56) <= input.last_sequence) {
      return PageRefusal::kReplayedSequence;
    }
    TransferId transfer{RequestId(At<uint64_t>(h, 8)),
                        AttemptId(At<uint32_t>(h, 16))};
    BlockRef block{At<int32_t>(h, 20), At<uint32_t>(h, 32)};
    if (!input.open.contains({transfer, block})) {
      for (const auto& [open_transfer, open_block] : input.open) {
        if (open_transfer == transfer && open_block.index == block.index) {
          return PageRefusal::kStaleGeneration;
        }
      }
      return PageRefusal::kNotPrepared;
    }
    Bytes payload = input.payload;
    payload.resize(At<uint64_t>(h, 40));
    if (At<uint64_t>(h, 48) != hasher_.Checksum(payload)) {
      return PageRefusal::kBadPayloadChecksum;
    }
    return std::nullopt;
  }

  SeededRandom random_;
  const KvLayout layout_ = SmallLayout();
  const BlockHasher hasher_{HashSecret("mutation")};
  const BlockHasher other_{HashSecret("another cluster")};
  Bytes memory_ = Bytes(kBlocks * layout_.block_bytes());
  const ArenaPages pages_{Arena{absl::MakeSpan(memory_), -1}, layout_};
  MutationReport report_;
};

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  const auto options = penstock::ParseMutationOptions(argc, argv);
  if (!options) return 2;
  penstock::Driver driver(options->seed);
  driver.Run(options->inputs);
  return driver.Report(options->min_hits);
}
