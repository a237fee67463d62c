#include "tests/benchmarks/relay/sse_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/env/random.h"
#include "common/env/real/monotonic_clock.h"

namespace penstock {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
// One in each chunk that shows text.
constexpr char kTokenMark[] = "\"text\":\" token\"";
constexpr size_t kMarkBytes = sizeof(kTokenMark) - 1;
constexpr absl::string_view kEnd = "\r\n0\r\n\r\n";

// A file descriptor that closes itself.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

absl::StatusOr<Socket> Connect(int port) {
  Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket.fd(), reinterpret_cast<sockaddr*>(&address),
              sizeof(address)) != 0) {
    return absl::UnavailableError(
        absl::StrCat("port ", port, ": ", std::strerror(errno)));
  }
  const int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return socket;
}

struct Connection {
  explicit Connection(Socket socket) : socket(std::move(socket)) {}
  Socket socket;
  Instant sent;
  int tokens = 0;
  std::string rest;  // of the answer, that may hold part of a mark
};

class Load {
 public:
  explicit Load(const SseLoad& load) : load_(load), random_(load.port) {}

  absl::StatusOr<SseResult> Run() {
    const Socket poll(epoll_create1(0));
    const Instant start = clock_.Now();
    for (int i = 0; i < load_.streams && asked_ < load_.requests; ++i) {
      ASSIGN_OR_RETURN(Socket socket, Connect(load_.port));
      const int fd = socket.fd();
      epoll_event event = {};
      event.events = EPOLLIN;
      event.data.fd = fd;
      epoll_ctl(poll.fd(), EPOLL_CTL_ADD, fd, &event);
      RETURN_IF_ERROR(
          Ask(connections_.try_emplace(fd, std::move(socket)).first->second));
    }
    std::array<epoll_event, 256> events;
    while (answered_ < load_.requests) {
      const int count =
          epoll_wait(poll.fd(), events.data(), events.size(), 1000);
      if (clock_.Now() > last_ + kPatience) {
        return absl::UnavailableError("no answer for a minute");
      }
      for (int i = 0; i < count; ++i) {
        RETURN_IF_ERROR(Read(connections_.at(events[i].data.fd)));
      }
    }
    result_.seconds = absl::ToDoubleSeconds(clock_.Now() - start);
    return std::move(result_);
  }

 private:
  absl::Status Ask(Connection& connection) {
    static constexpr std::array<absl::string_view, 8> kWords = {
        "river ", "stone ", "light ", "paper ",
        "green ", "house ", "cloud ", "metal "};
    ++asked_;
    std::string prompt;
    while (static_cast<int>(prompt.size()) < load_.prompt_chars) {
      absl::StrAppend(&prompt, kWords[random_.Below(kWords.size())]);
    }
    const std::string body = absl::StrCat(
        "{\"model\":\"", load_.model, "\",\"max_tokens\":", load_.tokens,
        ",\"ignore_eos\":true,\"temperature\":0,\"stream\":true,\"prompt\":\"",
        prompt, "\"}");
    const std::string request = absl::StrCat(
        "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Content-Type: application/json\r\nContent-Length: ",
        body.size(), "\r\n\r\n", body);
    connection.tokens = 0;
    connection.rest.clear();
    connection.sent = last_ = clock_.Now();
    if (send(connection.socket.fd(), request.data(), request.size(),
             MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
      return absl::UnavailableError("a request could not be sent");
    }
    return absl::OkStatus();
  }

  absl::Status Read(Connection& connection) {
    const ssize_t got =
        recv(connection.socket.fd(), buffer_.data(), buffer_.size(), 0);
    if (got <= 0) {
      return absl::UnavailableError(
          absl::StrCat("the connection ended: ", connection.rest));
    }
    last_ = clock_.Now();
    std::string& text = connection.rest;
    text.append(buffer_.data(), got);
    const int before = connection.tokens;
    size_t done = 0;
    for (size_t at = text.find(kTokenMark); at != std::string::npos;
         at = text.find(kTokenMark, done)) {
      ++connection.tokens;
      done = at + kMarkBytes;
    }
    if (before == 0 && connection.tokens > 0) {
      result_.first_token_ms.push_back(
          absl::ToDoubleMilliseconds(last_ - connection.sent));
    }
    if (!absl::EndsWith(text, kEnd)) {
      // Before the first token there may be an error to show.
      if (connection.tokens > 0) {
        text.erase(
            0, std::max(done, text.size() - std::min(text.size(), kMarkBytes)));
      }
      return absl::OkStatus();
    }
    if (connection.tokens != load_.tokens) {
      return absl::UnavailableError(
          absl::StrCat("an answer has ", connection.tokens, " tokens: ", text));
    }
    result_.tokens += connection.tokens;
    ++answered_;
    return asked_ < load_.requests ? Ask(connection) : absl::OkStatus();
  }

  const SseLoad load_;
  MonotonicClock clock_;
  SeededRandom random_;
  std::map<int, Connection> connections_;
  int asked_ = 0;
  int answered_ = 0;
  Instant last_;
  SseResult result_;
  std::array<char, 1 << 17> buffer_;
};

}  // namespace

absl::StatusOr<SseResult> RunSseLoad(const SseLoad& load) {
  // The buffer is too large for a stack.
  return std::make_unique<Load>(load)->Run();
}

}  // namespace penstock
