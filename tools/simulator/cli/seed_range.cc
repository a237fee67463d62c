#include "tools/simulator/cli/seed_range.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock {

absl::StatusOr<SeedRange> ParseSeedRange(absl::string_view text) {
  std::pair<absl::string_view, absl::string_view> ends = {text, text};
  if (text.find("..") != absl::string_view::npos) {
    ends = absl::StrSplit(text, absl::MaxSplits("..", 1));
  }
  SeedRange range;
  if (!absl::SimpleAtoi(ends.first, &range.first) ||
      !absl::SimpleAtoi(ends.second, &range.last) || range.last < range.first) {
    return absl::InvalidArgumentError(
        absl::StrCat("--seeds is \"", text,
                     "\"; it must be a number or a range like 1..200"));
  }
  return range;
}

}  // namespace penstock
