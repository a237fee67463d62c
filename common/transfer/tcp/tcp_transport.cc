#include "common/transfer/tcp/tcp_transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transfer/tcp/tcp_address.h"

namespace penstock {
namespace {

constexpr int kBacklog = 128;
constexpr int kProbeSeconds = 1;
constexpr int kProbes = 3;
constexpr unsigned int kUnackedMillis = 5000;

absl::Status SystemError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// The payload itself follows each header.
class StreamReader : public BodyReader {
 public:
  uint64_t BodyBytes(const PageHeader& header) const override {
    return header.payload_bytes;
  }
  Pieces Targets(const Pieces& page) override { return page; }
  absl::Status Finish(const PageHeader& header, const Pieces& page) override {
    return absl::OkStatus();
  }
};

class TcpCarrier : public PageCarrier {
 public:
  TcpCarrier(std::string listen, std::string advertised_host)
      : listen_(std::move(listen)),
        advertised_host_(std::move(advertised_host)) {}

  absl::StatusOr<Listening> Listen() override {
    ASSIGN_OR_RETURN(TcpAddress address, TcpAddress::Parse(listen_));
    UniqueFd fd(Socket(address));
    int yes = 1;
    if (!fd) return SystemError("socket");
    // A restarted worker gets its port back at once.
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd.get(), address.data(), address.size()) != 0 ||
        listen(fd.get(), kBacklog) != 0) {
      return SystemError(absl::StrCat("cannot listen on ", listen_));
    }
    ASSIGN_OR_RETURN(address, TcpAddress::OfSocket(fd.get()));
    if (!advertised_host_.empty()) {
      ASSIGN_OR_RETURN(address, address.WithHost(advertised_host_));
    }
    return Listening{std::move(fd), address.ToString()};
  }

  absl::StatusOr<UniqueFd> Dial(const std::string& text) override {
    ASSIGN_OR_RETURN(TcpAddress address, TcpAddress::Parse(text));
    UniqueFd fd(Socket(address));
    if (!fd) return SystemError("socket");
    if (connect(fd.get(), address.data(), address.size()) != 0 &&
        errno != EINPROGRESS) {
      return SystemError(absl::StrCat("cannot connect to ", text));
    }
    return fd;
  }

  void Adopt(int fd) override {
    // Acks and headers are small and waited for.
    int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    // A host that is gone says nothing: found by probes while nothing is sent,
    // by what stays unacknowledged else. Neither fails on a socket.
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kProbeSeconds,
               sizeof(kProbeSeconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kProbeSeconds,
               sizeof(kProbeSeconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof(kProbes));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnackedMillis,
               sizeof(kUnackedMillis));
  }

  absl::StatusOr<std::unique_ptr<BodyReader>> OpenReader(UniqueFd) override {
    return std::make_unique<StreamReader>();
  }

  void AppendBody(const PageWrite& write, const ArenaPages& pages,
                  OutQueue& out) const override {
    for (absl::Span<uint8_t> piece : pages.Page(write.source, write.layers)) {
      out.Borrow(piece);
    }
  }

 private:
  static int Socket(const TcpAddress& address) {
    return socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                  0);
  }

  const std::string listen_;
  const std::string advertised_host_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SocketTransport>> TcpTransport::Create(
    const Options& options) {
  return SocketTransport::Create(
      {TransportKind::kTcp, /*receiver_validates=*/true, /*preference=*/10},
      options.worker, options.limits,
      std::make_unique<TcpCarrier>(options.listen, options.advertised_host));
}

}  // namespace penstock
