#include "common/runtime/load/cache_folder.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace penstock {

std::string WeightsCacheFolder(absl::string_view option) {
  if (option == "off") return "";
  if (option != "auto") return std::string(option);
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') {
    return absl::StrCat(cache, "/penstock");
  }
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') {
    return absl::StrCat(home, "/.cache/penstock");
  }
  return "";
}

}  // namespace penstock
