#include "common/model/files/model_path.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace penstock {
namespace {

constexpr absl::string_view kEnd = ".gguf", kOf = "-of-";
constexpr size_t kDigits = 5;
// "-00001-of-00003"
constexpr size_t kTailBytes = 1 + kDigits + kOf.size() + kDigits;

struct Part {
  int number = 0;  // from 1; 0: the path is not of a part
  int count = 0;
};

Part PartOf(absl::string_view path) {
  Part part;
  if (!absl::ConsumeSuffix(&path, kEnd) || path.size() <= kTailBytes) return {};
  absl::string_view tail = path.substr(path.size() - kTailBytes);
  const bool parsed =
      tail[0] == '-' && tail.substr(1 + kDigits, kOf.size()) == kOf &&
      absl::SimpleAtoi(tail.substr(1, kDigits), &part.number) &&
      absl::SimpleAtoi(tail.substr(tail.size() - kDigits), &part.count);
  if (!parsed || part.number < 1 || part.count < part.number) return {};
  return part;
}

}  // namespace

std::vector<std::string> GgufPartPaths(absl::string_view path) {
  const auto [number, count] = PartOf(path);
  if (number != 1) return {std::string(path)};
  absl::ConsumeSuffix(&path, kEnd);
  path.remove_suffix(kTailBytes);
  std::vector<std::string> paths;
  for (int i = 1; i <= count; ++i) {
    paths.push_back(
        absl::StrCat(path, absl::StrFormat("-%05d-of-%05d", i, count), kEnd));
  }
  return paths;
}

bool IsLaterGgufPart(absl::string_view path) { return PartOf(path).number > 1; }

std::string ModelNameOf(absl::string_view path) {
  while (path.size() > 1 && absl::ConsumeSuffix(&path, "/")) {
  }
  const bool split = PartOf(path).number == 1;
  if (absl::ConsumeSuffix(&path, kEnd) && split) {
    path.remove_suffix(kTailBytes);
  }
  return std::string(path.substr(path.rfind('/') + 1));  // npos + 1 is 0
}

}  // namespace penstock
