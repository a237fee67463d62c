#include "common/transfer/page_header.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr absl::string_view kPayloadUrl = "penstock/page-refusal";

}  // namespace

const char* PageRefusalName(PageRefusal refusal) {
  static constexpr const char* kNames[] = {
      "truncated",        "bad_magic",         "bad_version",
      "bad_header_length", "bad_header_checksum", "bad_layer_range",
      "bad_length",       "wrong_layout",      "wrong_incarnation",
      "not_prepared",     "stale_generation",  "bad_payload_checksum",
      "replayed_sequence"};
  return kNames[static_cast<int>(refusal)];
}

absl::Status RefusalStatus(PageRefusal refusal, absl::string_view detail) {
  absl::Status status = absl::DataLossError(
      absl::StrCat("page refused: ", PageRefusalName(refusal), ": ", detail));
  status.SetPayload(kPayloadUrl,
                    absl::Cord(absl::StrCat(static_cast<int>(refusal))));
  return status;
}

}  // namespace penstock
