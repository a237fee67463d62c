#include "common/transfer/tcp/tcp_address.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace penstock {
namespace {

absl::Status Bad(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("data address \"", text, "\": ", why,
                   "; give a numeric host and a port, like 127.0.0.1:0"));
}

}  // namespace

absl::StatusOr<TcpAddress> TcpAddress::Parse(absl::string_view text) {
  size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return Bad(text, "no port");
  uint32_t port;
  if (!absl::SimpleAtoi(text.substr(colon + 1), &port) || port > UINT16_MAX) {
    return Bad(text, "bad port");
  }
  std::string host(text.substr(0, colon));
  TcpAddress address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage_);
  if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    return address;
  }
  absl::string_view bare = host;
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage_);
  if (absl::ConsumePrefix(&bare, "[") && absl::ConsumeSuffix(&bare, "]") &&
      inet_pton(AF_INET6, std::string(bare).c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    return address;
  }
  return Bad(text, "bad host");
}

absl::StatusOr<TcpAddress> TcpAddress::OfSocket(int fd) {
  TcpAddress address;
  socklen_t size = sizeof(address.storage_);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage_), &size) !=
      0) {
    return absl::UnavailableError(
        absl::StrCat("getsockname: ", std::strerror(errno)));
  }
  return address;
}

absl::StatusOr<TcpAddress> TcpAddress::WithHost(absl::string_view host) const {
  std::string own = ToString();
  absl::string_view port = absl::string_view(own).substr(own.rfind(':'));
  bool v6 =
      host.find(':') != absl::string_view::npos && !absl::StartsWith(host, "[");
  return Parse(v6 ? absl::StrCat("[", host, "]", port)
                  : absl::StrCat(host, port));
}

std::string TcpAddress::ToString() const {
  char host[INET6_ADDRSTRLEN] = {};
  if (storage_.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage_);
    inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
    return absl::StrCat(host, ":", ntohs(v4->sin_port));
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage_);
  inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
  return absl::StrCat("[", host, "]:", ntohs(v6->sin6_port));
}

}  // namespace penstock
