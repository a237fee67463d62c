#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "router/http/server/http_exchange.h"

namespace penstock {

// The head of a response as bytes.
struct ResponseHead {
  int status = 200;
  bool http_1_0 = false;  // what the client speaks
  bool keep_alive = true;
  // What is promised with keep_alive.
  absl::Duration keep_alive_timeout = absl::ZeroDuration();
  // Absent: in chunks, or to the end of the connection for HTTP/1.0.
  std::optional<uint64_t> content_length;
  absl::Time now;
};

// Line breaks in headers' values, which would end them, become spaces.
std::string WriteHead(const ResponseHead& head, const HttpHeaders& headers);

// One chunk of a body in chunks; empty for an empty piece, which would end it.
std::string WriteChunk(absl::string_view piece);
inline constexpr absl::string_view kLastChunk = "0\r\n\r\n";

}  // namespace penstock
