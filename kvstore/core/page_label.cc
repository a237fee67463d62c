#include "kvstore/core/page_label.h"

#include "absl/strings/str_cat.h"

namespace penstock {

PageLabel LabelPage(const TierIdentity& identity, const TierKey& key,
                    absl::Span<const absl::Span<const uint8_t>> page,
                    const BlockHasher& hasher) {
  PageLabel label;
  label.identity = identity;
  label.key = key;
  for (absl::Span<const uint8_t> piece : page) label.bytes += piece.size();
  label.checksum = hasher.ChecksumPieces(page);
  return label;
}

absl::Status CheckLabel(const PageLabel& label, const TierIdentity& identity,
                        const TierKey& asked, uint64_t bytes,
                        const BlockHasher& hasher) {
  if (label.identity != identity) {
    return absl::DataLossError(
        "the page is of another model, layout or numerics");
  }
  if (label.key != asked) {
    return absl::DataLossError("the page is of another block");
  }
  if (hasher.Next(label.key.parent, label.key.tokens) != label.key.hash) {
    return absl::DataLossError("the page's tokens do not make its hash");
  }
  if (label.bytes != bytes) {
    return absl::DataLossError(
        absl::StrCat("the page has ", label.bytes, " bytes, a block ", bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckBytes(const PageLabel& label,
                        absl::Span<const absl::Span<const uint8_t>> page,
                        const BlockHasher& hasher) {
  uint64_t bytes = 0;
  for (absl::Span<const uint8_t> piece : page) bytes += piece.size();
  if (bytes != label.bytes || hasher.ChecksumPieces(page) != label.checksum) {
    return absl::DataLossError("the page's bytes do not have its checksum");
  }
  return absl::OkStatus();
}

}  // namespace penstock
