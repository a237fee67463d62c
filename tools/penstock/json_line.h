#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace penstock {

// A document on one line, in ASCII: whatever splits lines by Unicode rules
// still sees one. Never throws: bytes that are no UTF-8 become U+FFFD.
inline std::string JsonLine(const nlohmann::json& document) {
  return document.dump(-1, ' ', /*ensure_ascii=*/true,
                       nlohmann::json::error_handler_t::replace);
}

}  // namespace penstock
