#include "common/transfer/page_header.h"

#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/transfer/little_endian.h"

namespace penstock {
namespace {

constexpr absl::string_view kPayloadUrl = "penstock/page-refusal";
constexpr uint8_t kMagic[4] = {'P', 'K', 'V', 'P'};
constexpr size_t kChecksumAt = kPageHeaderBytes - sizeof(uint64_t);

constexpr const char* kNames[] = {
    "truncated",         "bad_magic",           "bad_version",
    "bad_header_length", "bad_header_checksum", "bad_layer_range",
    "bad_length",        "wrong_layout",        "wrong_incarnation",
    "not_prepared",      "stale_generation",    "bad_payload_checksum",
    "replayed_sequence"};
static_assert(std::size(kNames) == kPageRefusals);

}  // namespace

const char* PageRefusalName(PageRefusal refusal) {
  return kNames[static_cast<int>(refusal)];
}

absl::Status RefusalStatus(PageRefusal refusal, absl::string_view detail) {
  absl::Status status = absl::DataLossError(
      absl::StrCat("page refused: ", PageRefusalName(refusal), ": ", detail));
  status.SetPayload(kPayloadUrl, absl::Cord(PageRefusalName(refusal)));
  return status;
}

std::optional<PageRefusal> RefusalOf(const absl::Status& status) {
  absl::optional<absl::Cord> name = status.GetPayload(kPayloadUrl);
  if (!name.has_value()) return std::nullopt;
  for (int i = 0; i < kPageRefusals; ++i) {
    if (*name == kNames[i]) return static_cast<PageRefusal>(i);
  }
  return std::nullopt;
}

std::array<uint8_t, kPageHeaderBytes> EncodePageHeader(
    const PageHeader& header, const BlockHasher& hasher) {
  CHECK(0 <= header.layers.first && header.layers.first <= header.layers.last &&
        header.layers.last <= UINT16_MAX);
  std::array<uint8_t, kPageHeaderBytes> out;
  std::memcpy(out.data(), kMagic, sizeof(kMagic));
  StoreLittleEndian<uint16_t>(kPageHeaderVersion, &out[4]);
  StoreLittleEndian<uint16_t>(kPageHeaderBytes, &out[6]);
  StoreLittleEndian<uint64_t>(header.transfer.request.value(), &out[8]);
  StoreLittleEndian<uint32_t>(header.transfer.attempt.value(), &out[16]);
  StoreLittleEndian<int32_t>(header.block.index, &out[20]);
  StoreLittleEndian<uint64_t>(header.destination.value(), &out[24]);
  StoreLittleEndian<uint32_t>(header.block.generation, &out[32]);
  StoreLittleEndian<uint16_t>(header.layers.first, &out[36]);
  StoreLittleEndian<uint16_t>(header.layers.last, &out[38]);
  StoreLittleEndian<uint64_t>(header.payload_bytes, &out[40]);
  StoreLittleEndian<uint64_t>(header.payload_checksum, &out[48]);
  StoreLittleEndian<uint64_t>(header.sequence, &out[56]);
  StoreLittleEndian<uint64_t>(header.layout.value(), &out[64]);
  StoreLittleEndian<uint64_t>(
      hasher.Checksum(absl::MakeConstSpan(out).first(kChecksumAt)),
      &out[kChecksumAt]);
  return out;
}

absl::StatusOr<PageHeader> ParsePageHeader(absl::Span<const uint8_t> bytes,
                                           const BlockHasher& hasher) {
  if (bytes.size() < kPageHeaderBytes) {
    return RefusalStatus(
        PageRefusal::kTruncated,
        absl::StrCat(bytes.size(), " bytes of header, not ", kPageHeaderBytes));
  }
  const uint8_t* in = bytes.data();
  if (std::memcmp(in, kMagic, sizeof(kMagic)) != 0) {
    return RefusalStatus(PageRefusal::kBadMagic, "not a page header");
  }
  if (uint16_t version = LoadLittleEndian<uint16_t>(in + 4);
      version != kPageHeaderVersion) {
    return RefusalStatus(PageRefusal::kBadVersion,
                         absl::StrCat("version ", version, "; only ",
                                      kPageHeaderVersion, " is spoken here"));
  }
  if (uint16_t length = LoadLittleEndian<uint16_t>(in + 6);
      length != kPageHeaderBytes) {
    return RefusalStatus(
        PageRefusal::kBadHeaderLength,
        absl::StrCat("header says ", length, " bytes of header"));
  }
  if (LoadLittleEndian<uint64_t>(in + kChecksumAt) !=
      hasher.Checksum(bytes.first(kChecksumAt))) {
    return RefusalStatus(PageRefusal::kBadHeaderChecksum,
                         "damaged, or made with another cluster key");
  }
  PageHeader header;
  header.transfer.request = RequestId(LoadLittleEndian<uint64_t>(in + 8));
  header.transfer.attempt = AttemptId(LoadLittleEndian<uint32_t>(in + 16));
  header.block.index = LoadLittleEndian<int32_t>(in + 20);
  header.destination = Incarnation(LoadLittleEndian<uint64_t>(in + 24));
  header.block.generation = LoadLittleEndian<uint32_t>(in + 32);
  header.layers.first = LoadLittleEndian<uint16_t>(in + 36);
  header.layers.last = LoadLittleEndian<uint16_t>(in + 38);
  header.payload_bytes = LoadLittleEndian<uint64_t>(in + 40);
  header.payload_checksum = LoadLittleEndian<uint64_t>(in + 48);
  header.sequence = LoadLittleEndian<uint64_t>(in + 56);
  header.layout = LayoutId(LoadLittleEndian<uint64_t>(in + 64));
  return header;
}

absl::Status CheckPageHeader(const PageHeader& header, const KvLayout& layout) {
  if (header.layout != layout.id()) {
    return RefusalStatus(PageRefusal::kWrongLayout,
                         absl::StrCat("layout id ", header.layout.value(),
                                      ", not ", layout.id().value()));
  }
  if (header.layers.first < 0 || header.layers.first >= header.layers.last ||
      header.layers.last > layout.layers) {
    return RefusalStatus(
        PageRefusal::kBadLayerRange,
        absl::StrCat("layers [", header.layers.first, ", ", header.layers.last,
                     ") of ", layout.layers));
  }
  uint64_t bytes =
      layout.layer_bytes() * (header.layers.last - header.layers.first);
  if (header.payload_bytes != bytes) {
    return RefusalStatus(PageRefusal::kBadLength,
                         absl::StrCat("payload of ", header.payload_bytes,
                                      " bytes, not ", bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<PageHeader> DecodePageHeader(absl::Span<const uint8_t> bytes,
                                            const KvLayout& layout,
                                            const BlockHasher& hasher) {
  ASSIGN_OR_RETURN(PageHeader header, ParsePageHeader(bytes, hasher));
  RETURN_IF_ERROR(CheckPageHeader(header, layout));
  return header;
}

}  // namespace penstock
