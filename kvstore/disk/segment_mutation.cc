// Seeded mutation of segment files: bits flipped, stretches zeroed, records
// moved, taken from other segments and stores, signed anew with a wrong field.
// Whatever still counts as a page must be, byte for byte, one that was written
// to this very slot. Prints how often each verdict was seen.
//
//   segment_mutation [--seed N] [--inputs N] [--min-hits N]

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/env/random.h"
#include "common/env/testing/mutation_report.h"
#include "kvstore/core/page_label.h"
#include "kvstore/disk/segment_file.h"
#include "kvstore/disk/segment_format.h"

namespace penstock {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr int kSlots = 4;
constexpr uint64_t kPageBytes = 256;
constexpr StoreIdentity kStore{{LayoutId(1), ContentId(2), NumericsId(3)},
                               kPageBytes};
constexpr StoreIdentity kOtherStore{{LayoutId(1), ContentId(2), NumericsId(4)},
                                    kPageBytes};
constexpr size_t kSlotBytes = kRecordHeaderBytes + kPageBytes;

class Driver {
 public:
  explicit Driver(uint64_t seed) : random_(seed) {
    std::string name =
        (std::filesystem::temp_directory_path() / "penstock-mutation-XXXXXX")
            .string();
    CHECK(mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  ~Driver() { std::filesystem::remove_all(folder_); }

  void Run(uint64_t inputs) {
    for (uint64_t i = 0; i < inputs; ++i) One(i % 128 == 0);
  }

  int Report(uint64_t min_hits) const {
    return report_.Print(
        {"segment OK", "segment DATA_LOSS", "record OK", "record DATA_LOSS",
         "page OK", "page DATA_LOSS", "file OK", "file DATA_LOSS"},
        min_hits);
  }

 private:
  // A whole segment with all slots written.
  Bytes Segment(const StoreIdentity& store, uint64_t number,
                const BlockHasher& hasher) {
    const SegmentHeaderBytes header =
        EncodeSegmentHeader({store, number}, hasher);
    Bytes out(header.begin(), header.end());
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      const Bytes record = Record(header, slot, hasher, nullptr);
      out.insert(out.end(), record.begin(), record.end());
    }
    return out;
  }

  Bytes Record(const SegmentHeaderBytes& segment, uint32_t slot,
               const BlockHasher& hasher,
               const std::function<void(RecordHeader&)>& spoil) {
    RecordHeader record;
    record.key.parent = BlockHash(1 + random_.Below(100));
    for (TokenId& token : record.key.tokens) {
      token = static_cast<TokenId>(random_.Below(1000));
    }
    record.key.hash = hasher_.Next(record.key.parent, record.key.tokens);
    Bytes page(kPageBytes);
    for (uint8_t& byte : page) byte = static_cast<uint8_t>(random_.Next());
    record.page_bytes = kPageBytes;
    record.page_checksum = hasher_.Checksum(page);
    record.slot = slot;
    if (spoil) spoil(record);
    const RecordHeaderBytes header =
        EncodeRecordHeader(record, segment, hasher);
    Bytes out(kSlotBytes);
    std::copy(header.begin(), header.end(), out.begin());
    std::copy(page.begin(), page.end(), out.begin() + kRecordHeaderBytes);
    return out;
  }

  void Mutate(Bytes& segment) {
    auto slot_at = [&](uint64_t slot) {
      return segment.data() + kSegmentHeaderBytes + slot * kSlotBytes;
    };
    const uint64_t slot = random_.Below(kSlots);
    switch (random_.Below(8)) {
      case 0: {  // a bit, anywhere
        const uint64_t bit = random_.Below(8 * segment.size());
        segment[bit / 8] ^= 1 << (bit % 8);
        return;
      }
      case 1: {  // a bit of a header
        const uint64_t bit = random_.Below(8 * kSegmentHeaderBytes);
        segment[bit / 8] ^= 1 << (bit % 8);
        return;
      }
      case 2: {  // never written
        const uint64_t first = random_.Below(segment.size());
        const uint64_t count = random_.Below(segment.size() - first);
        std::fill_n(segment.begin() + static_cast<int64_t>(first), count, 0);
        return;
      }
      case 3: {  // at another slot of its segment
        const Bytes copy(slot_at(slot), slot_at(slot + 1));
        std::memcpy(slot_at(random_.Below(kSlots)), copy.data(), copy.size());
        return;
      }
      case 4: {  // of another segment or store, or signed with another key
        const uint64_t which = random_.Below(3);
        const Bytes other =
            Segment(which == 0 ? kOtherStore : kStore, which == 1 ? 8 : 7,
                    which == 2 ? stranger_ : hasher_);
        const uint64_t from = random_.Below(2) == 0 ? 0 : kSegmentHeaderBytes;
        std::memcpy(segment.data() + from, other.data() + from,
                    from == 0 ? kSegmentHeaderBytes : kSlotBytes);
        return;
      }
      case 5:  // signed with the right key, and wrong all the same
        Forge(slot_at(slot), slot);
        return;
      case 6: {  // a page under another's header
        std::memmove(slot_at(slot) + kRecordHeaderBytes,
                     slot_at(random_.Below(kSlots)) + kRecordHeaderBytes,
                     kPageBytes);
        return;
      }
      default:  // torn
        segment.resize(random_.Below(segment.size() + 1));
        // Whoever mutates further needs it whole: zeros were never written.
        torn_ = segment.size();
        segment.resize(kSegmentHeaderBytes + kSlots * kSlotBytes, 0);
    }
  }

  void Forge(uint8_t* at, uint64_t slot) {
    const SegmentHeaderBytes header = EncodeSegmentHeader({kStore, 7}, hasher_);
    const Bytes forged = Record(
        header, static_cast<uint32_t>(slot), hasher_, [&](RecordHeader& r) {
          switch (random_.Below(4)) {
            case 0:
              r.page_bytes = random_.Next();
              break;
            case 1:
              r.key.hash = BlockHash(random_.Next());
              break;
            case 2:
              r.key.tokens[random_.Below(kBlockTokens)] ^= 1;
              break;
            default:
              r.slot += kSlots;
          }
        });
    std::memcpy(at, forged.data(), forged.size());
  }

  void One(bool with_file) {
    const Bytes written = Segment(kStore, 7, hasher_);
    Bytes bytes = written;
    torn_ = bytes.size();
    for (uint64_t n = random_.Below(3); n > 0; --n) Mutate(bytes);

    const bool header_whole =
        std::memcmp(bytes.data(), written.data(), kSegmentHeaderBytes) == 0;
    const auto header = DecodeSegmentHeader(
        absl::MakeConstSpan(bytes).first(kSegmentHeaderBytes), hasher_);
    report_.Count("segment", header.status());
    const bool ours =
        header.ok() && header->number == 7 && header->store == kStore;
    CHECK(ours == header_whole) << "a segment's header is judged wrongly";
    if (with_file) TryFile(bytes, header_whole && torn_ >= kSegmentHeaderBytes);
    if (!ours) return;
    SegmentHeaderBytes segment;
    std::copy_n(bytes.begin(), segment.size(), segment.begin());
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      TrySlot(bytes, written, segment, slot);
    }
  }

  void TrySlot(const Bytes& bytes, const Bytes& written,
               const SegmentHeaderBytes& segment, uint32_t slot) {
    const size_t at = kSegmentHeaderBytes + slot * kSlotBytes;
    const auto header =
        absl::MakeConstSpan(bytes).subspan(at, kRecordHeaderBytes);
    const auto page =
        absl::MakeConstSpan(bytes).subspan(at + kRecordHeaderBytes, kPageBytes);
    const auto record =
        DecodeRecordHeader(header, segment, slot, kPageBytes, hasher_);
    report_.Count("record", record.status());
    CHECK(record.ok() ==
          (std::memcmp(header.data(), &written[at], header.size()) == 0))
        << "a record's header is judged wrongly: " << record.status();
    if (!record.ok()) return;
    const PageLabel label{kStore.worker, record->key, record->page_bytes,
                          record->page_checksum};
    const absl::Span<const uint8_t> pieces[] = {page};
    const absl::Status verdict = CheckBytes(label, pieces, hasher_);
    report_.Count("page", verdict);
    CHECK(verdict.ok() ==
          (std::memcmp(bytes.data() + at, &written[at], kSlotBytes) == 0))
        << "a page is judged wrongly";
  }

  void TryFile(const Bytes& bytes, bool expected) {
    std::ofstream(folder_ + "/0000000000000007.pkv",
                  std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(torn_));
    auto file = SegmentFile::Open(folder_, 7, kStore, hasher_);
    report_.Count("file", file.status());
    CHECK(file.ok() == expected);
    if (!file.ok()) return;
    const auto scan = (*file)->ReadRecords(hasher_);
    CHECK(scan.ok()) << scan.status();
    CHECK(scan->slots == (torn_ - kSegmentHeaderBytes) / kSlotBytes);
    CHECK(scan->records.size() + scan->bad == scan->slots);
  }

  SeededRandom random_;
  const BlockHasher hasher_{HashSecret("ours")};
  const BlockHasher stranger_{HashSecret("theirs")};
  std::string folder_;
  size_t torn_ = 0;  // where the file ends
  MutationReport report_;
};

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  const auto options = penstock::ParseMutationOptions(argc, argv);
  if (!options.has_value()) return 2;
  penstock::Driver driver(options->seed);
  driver.Run(options->inputs);
  return driver.Report(options->min_hits);
}
