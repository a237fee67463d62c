#include "common/model/files/model_path.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace penstock {

std::vector<std::string> GgufPartPaths(absl::string_view path) {
  constexpr absl::string_view kFirst = "-00001-of-", kEnd = ".gguf";
  constexpr size_t kDigits = 5;
  const size_t tail = kFirst.size() + kDigits + kEnd.size();
  int count = 0;
  if (path.size() <= tail || !absl::EndsWith(path, kEnd) ||
      path.substr(path.size() - tail, kFirst.size()) != kFirst ||
      !absl::SimpleAtoi(
          path.substr(path.size() - kEnd.size() - kDigits, kDigits), &count) ||
      count < 1) {
    return {std::string(path)};
  }
  std::vector<std::string> paths;
  for (int i = 1; i <= count; ++i) {
    paths.push_back(absl::StrCat(path.substr(0, path.size() - tail),
                                 absl::StrFormat("-%05d-of-%05d", i, count),
                                 kEnd));
  }
  return paths;
}

}  // namespace penstock
