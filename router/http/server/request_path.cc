#include "router/http/server/request_path.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"

namespace penstock {

std::string RequestPath(absl::string_view target) {
  // The form that proxies get.
  if (absl::StartsWith(target, "http://")) {
    target.remove_prefix(7);
    target.remove_prefix(std::min(target.find('/'), target.size()));
  }
  target = target.substr(0, target.find_first_of("?#"));
  std::string path;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == '%' && i + 2 < target.size() &&
        absl::ascii_isxdigit(target[i + 1]) &&
        absl::ascii_isxdigit(target[i + 2])) {
      path += absl::HexStringToBytes(target.substr(i + 1, 2));
      i += 2;
    } else {
      path += target[i];
    }
  }
  return path;
}

}  // namespace penstock
