#include "common/model/files/gguf_cursor.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace penstock {

absl::StatusOr<absl::Span<const uint8_t>> GgufCursor::Bytes(
    uint64_t length, absl::string_view field) {
  if (length > remaining()) {
    return errors_.Make(
        ModelError::kTruncated,
        {.field = std::string(field),
         .found = absl::StrCat("the end of the file at byte ", file_.size()),
         .expected = absl::StrCat(length, " bytes at byte ", offset_)});
  }
  absl::Span<const uint8_t> bytes = file_.subspan(offset_, length);
  offset_ += length;
  return bytes;
}

absl::StatusOr<absl::string_view> GgufCursor::String(absl::string_view field) {
  ASSIGN_OR_RETURN(uint64_t length, Number<uint64_t>(field));
  if (length > remaining()) {
    return errors_.Make(
        ModelError::kStringLength,
        {.field = std::string(field),
         .found =
             absl::StrCat("a string of ", length, " bytes at byte ", offset_),
         .expected = absl::StrCat("at most the ", remaining(),
                                  " bytes that are left in the file")});
  }
  absl::Span<const uint8_t> bytes = file_.subspan(offset_, length);
  offset_ += length;
  return absl::string_view(reinterpret_cast<const char*>(bytes.data()),
                           bytes.size());
}

}  // namespace penstock
