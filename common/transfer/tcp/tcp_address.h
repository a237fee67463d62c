#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {

// A numeric host and port, IPv4 or IPv6; names are not looked up, since that
// would block. Value type.
class TcpAddress {
 public:
  // "127.0.0.1:4711" or "[::1]:4711". INVALID_ARGUMENT names what is wrong.
  static absl::StatusOr<TcpAddress> Parse(absl::string_view text);

  // Where a bound socket listens.
  static absl::StatusOr<TcpAddress> OfSocket(int fd);

  // The same port at another numeric host.
  absl::StatusOr<TcpAddress> WithHost(absl::string_view host) const;

  std::string ToString() const;

  const sockaddr* data() const {
    return reinterpret_cast<const sockaddr*>(&storage_);
  }
  socklen_t size() const {
    return storage_.ss_family == AF_INET ? sizeof(sockaddr_in)
                                         : sizeof(sockaddr_in6);
  }
  int family() const { return storage_.ss_family; }

 private:
  sockaddr_storage storage_ = {};
};

}  // namespace penstock
