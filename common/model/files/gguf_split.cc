#include "common/model/files/gguf_split.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

constexpr IntegerRange kParts = {0, 1 << 16};

// What a part says of itself against what it is.
absl::Status CheckNumber(const GgufReader& part, absl::string_view key,
                         int64_t absent, int64_t expected,
                         absl::string_view way_out) {
  ASSIGN_OR_RETURN(int64_t found,
                   part.metadata().IntegerOr(key, kParts, absent));
  if (found == expected) return absl::OkStatus();
  return part.errors().Make(
      ModelError::kSplit,
      {.field = std::string(key),
       .found = absl::StrCat(found),
       .expected = absl::StrCat(expected, " (", way_out, ")")});
}

}  // namespace

absl::StatusOr<TensorMap> JoinGgufParts(absl::Span<const GgufReader> parts) {
  CHECK(!parts.empty());
  const int64_t count = static_cast<int64_t>(parts.size());
  TensorMap tensors;
  for (int64_t i = 0; i < count; ++i) {
    const GgufReader& part = parts[i];
    // The key is 0 or absent in a file that was never split.
    ASSIGN_OR_RETURN(int64_t said,
                     part.metadata().IntegerOr("split.count", kParts, 1));
    if (said != 0 || count != 1) {
      RETURN_IF_ERROR(CheckNumber(
          part, "split.count", 1, count,
          "a model in several files is opened by the name of its first, "
          "which ends in -00001-of-0000N.gguf, with the others beside it"));
    }
    RETURN_IF_ERROR(CheckNumber(part, "split.no", 0, i,
                                "each file under the name it was made with"));
    for (const auto& [name, tensor] : part.tensors()) {
      if (!tensors.emplace(name, tensor).second) {
        return part.errors().Make(
            ModelError::kDuplicateTensor,
            {.field = absl::StrCat("tensor ", QuoteForError(name)),
             .found = "the name in an earlier part, too",
             .expected = "each name once"});
      }
    }
  }
  ASSIGN_OR_RETURN(int64_t total, parts[0].metadata().IntegerOr(
                                      "split.tensors.count", {},
                                      static_cast<int64_t>(tensors.size())));
  if (total != static_cast<int64_t>(tensors.size())) {
    return parts[0].errors().Make(
        ModelError::kSplit,
        {.field = "split.tensors.count",
         .found = absl::StrCat(total),
         .expected = absl::StrCat("the ", tensors.size(),
                                  " that the parts hold together")});
  }
  return tensors;
}

}  // namespace penstock
