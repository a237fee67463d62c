#include "router/http/server/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/env/real/monotonic_clock.h"
#include "common/runtime/loop_thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "router/http/server/response_text.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::chrono::seconds kPatience(30);

// A client's socket.
class Client {
 public:
  explicit Client(const std::string& address)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    int port = 0;
    EXPECT_TRUE(
        absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    const int little = 4096;
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }
  ~Client() { Leave(); }

  void Leave() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void Send(const std::string& text) {
    EXPECT_EQ(send(fd_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Up to and with `end`; all until the server closes when that is empty.
  std::string Read(const std::string& end) {
    while (end.empty() || text_.find(end) == std::string::npos) {
      char bytes[4096];
      const ssize_t got = recv(fd_, bytes, sizeof(bytes), 0);
      EXPECT_GE(got, 0) << "reset, or nothing in time";
      if (got <= 0) return std::exchange(text_, "");
      text_.append(bytes, static_cast<size_t>(got));
    }
    const size_t length = text_.find(end) + end.size();
    std::string found = text_.substr(0, length);
    text_.erase(0, length);
    return found;
  }

 private:
  int fd_;
  std::string text_;  // received beyond what was asked for
};

// Says how an exchange ended.
class Ended : public HttpCall {
 public:
  explicit Ended(std::promise<absl::Status>* ended) : ended_(ended) {}
  void OnClosed(const absl::Status& status) override {
    ended_->set_value(status);
  }

 private:
  std::promise<absl::Status>* const ended_;
};

class CountingProbe : public NullHttpProbe {
 public:
  void ConnectionCut(absl::string_view reason) override {
    if (reason == "slow_reader") ++slow_readers;
  }
  std::atomic<int> slow_readers = 0;
};

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() : loop_(clock_, {.name = "loop"}) { loop_.Start(nullptr); }
  ~HttpServerTest() override {
    server_.reset();
    loop_.Stop();
  }

  void Start(HttpHandler handler, const HttpLimits& limits = {}) {
    auto server = HttpServer::Start({"127.0.0.1:0", limits}, std::move(handler),
                                    loop_.inbox(), &probe_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // Says back what it got.
  static std::unique_ptr<HttpCall> Echo(HttpRequest request,
                                        std::shared_ptr<HttpExchange> e) {
    e->Respond(
        {200,
         {},
         absl::StrCat(request.method, " ", request.path, " ", request.body)});
    return nullptr;
  }
  // Begins an answer and keeps its end open.
  HttpHandler Hang() {
    return [this](HttpRequest, std::shared_ptr<HttpExchange> e) {
      e->Begin(200, {});
      e->Send("begun");
      started_.set_value(std::move(e));
      return std::make_unique<Ended>(&ended_);
    };
  }
  absl::Status WaitEnded() {
    auto ended = ended_.get_future();
    if (ended.wait_for(kPatience) != std::future_status::ready) {
      return absl::DeadlineExceededError("it has not ended");
    }
    return ended.get();
  }

  MonotonicClock clock_;
  CountingProbe probe_;
  LoopThread loop_;
  std::unique_ptr<HttpServer> server_;
  std::promise<std::shared_ptr<HttpExchange>> started_;
  std::promise<absl::Status> ended_;
};

TEST_F(HttpServerTest, AnswersRequestsOfOneConnectionInOrder) {
  Start(Echo);
  Client client(server_->address());
  client.Send(
      "GET /a%20b?c=d HTTP/1.1\r\n\r\n"
      "POST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\n123"
      "POST /y HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
      "HEAD /h HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.Read("GET /a b "), HasSubstr("Connection: keep-alive"));
  EXPECT_THAT(client.Read("POST /x 123"), HasSubstr("Content-Length: 11"));
  EXPECT_THAT(client.Read("POST /y abc"), StartsWith("HTTP/1.1 200 OK\r\n"));
  const std::string last = client.Read("");
  EXPECT_THAT(last, HasSubstr("Content-Length: 7\r\n"));
  EXPECT_THAT(last, HasSubstr("Connection: close\r\n\r\n"));
  EXPECT_TRUE(absl::EndsWith(last, "\r\n\r\n")) << "a body after HEAD";
}

TEST_F(HttpServerTest, StreamsInChunksAndTellsTheHandlerOfTheEnd) {
  Start(Hang());
  Client client(server_->address());
  client.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.Read("5\r\nbegun\r\n"),
              HasSubstr("Transfer-Encoding: chunked\r\n"));
  auto exchange = started_.get_future().get();
  exchange->Send("");
  exchange->Send("more");
  exchange->End();
  exchange->Send("too late");
  EXPECT_EQ(client.Read("0\r\n\r\n"), "4\r\nmore\r\n0\r\n\r\n");
  EXPECT_TRUE(WaitEnded().ok());
}

TEST_F(HttpServerTest, AClientThatLeavesEndsItsExchange) {
  Start(Hang());
  Client client(server_->address());
  client.Send("GET / HTTP/1.1\r\n\r\n");
  client.Read("begun");
  auto exchange = started_.get_future().get();
  client.Leave();
  EXPECT_EQ(WaitEnded().code(), absl::StatusCode::kCancelled);
  exchange->Send("to nobody");
  exchange->End();
}

TEST_F(HttpServerTest, AClientThatDoesNotReadIsCutOff) {
  Start(Hang(), {.max_queued_bytes = 10000});
  Client client(server_->address());
  client.Send("GET / HTTP/1.1\r\n\r\n");
  auto exchange = started_.get_future().get();
  auto ended = ended_.get_future();
  const std::string piece(1000, 'x');
  // The kernel takes some of it; each round here is a piece more.
  for (int i = 0; i < 100000 && ended.wait_for(std::chrono::seconds(0)) !=
                                    std::future_status::ready;
       ++i) {
    exchange->Send(piece);
  }
  ASSERT_EQ(ended.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(ended.get().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(probe_.slow_readers, 1);
}

TEST_F(HttpServerTest, AnExchangeThatNobodyAnswersEndsItsConnection) {
  Start([](HttpRequest, std::shared_ptr<HttpExchange>) { return nullptr; });
  Client client(server_->address());
  client.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.Read(""), "");
}

TEST_F(HttpServerTest, ShutdownEndsWhatRunsAndExchangesMayOutliveIt) {
  Start(Hang());
  Client busy(server_->address());
  busy.Send("GET / HTTP/1.1\r\n\r\n");
  busy.Read("begun");
  auto exchange = started_.get_future().get();
  server_->Shutdown(absl::ZeroDuration());
  EXPECT_EQ(WaitEnded().code(), absl::StatusCode::kCancelled);
  server_.reset();
  exchange->Send("to nobody");
}

TEST_F(HttpServerTest, ADrainingServerSaysThatConnectionsClose) {
  Start(Echo);
  Client client(server_->address());
  client.Send("GET /1 HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.Read("GET /1"), HasSubstr("keep-alive"));
  server_->Drain();
  client.Send("GET /2 HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.Read(""), HasSubstr("Connection: close"));
}

TEST_F(HttpServerTest, RefusesWhatIsTooMuchOrTooSlow) {
  Start(Echo, {.max_header_bytes = 1024,
               .max_body_bytes = 10,
               .max_connections = 1,
               .header_timeout = absl::Milliseconds(50),
               .body_timeout = absl::Milliseconds(50)});
  const std::map<std::string, std::string> cases = {
      {"GET / HTTP/1.1\r\nX: " + std::string(3000, 'x') + "\r\n\r\n", "431"},
      {"POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n", "413"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
       "b\r\n12345678901\r\n0\r\n\r\n",
       "413"},
      {"GET / HT", "408"},
      {"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n12", "408"},
      {"GET / HTTP/1.1\r\nExpect: a-miracle\r\n\r\n", "417"},
      {"nonsense\r\n\r\n", "400"}};
  for (const auto& [request, status] : cases) {
    std::string answer;
    // The connection before may still be seen as open.
    do {
      Client client(server_->address());
      client.Send(request);
      answer = client.Read("");
    } while (absl::StartsWith(answer, "HTTP/1.1 503"));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + status)) << request;
    EXPECT_THAT(answer, HasSubstr("Connection: close"));
  }
}

TEST_F(HttpServerTest, TellsThatThereAreTooManyConnections) {
  Start(Echo, {.max_connections = 1});
  Client first(server_->address());
  first.Send("GET /1 HTTP/1.1\r\n\r\n");
  first.Read("GET /1 ");
  Client second(server_->address());
  EXPECT_THAT(second.Read(""), StartsWith("HTTP/1.1 503"));
  first.Send("GET /2 HTTP/1.1\r\n\r\n");
  EXPECT_THAT(first.Read("GET /2 "), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, NamesAnAddressThatIsTaken) {
  Start(Echo);
  const auto again =
      HttpServer::Start({server_->address(), {}}, Echo, loop_.inbox(), &probe_);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(again.status().message()),
              HasSubstr(server_->address()));
}

TEST(ResponseTextTest, AHeadersValueCannotEndIt) {
  const std::string head = WriteHead(
      {.status = 499, .content_length = 0, .now = absl::FromUnixSeconds(0)},
      {{"x-request-id", "a\r\nSet-Cookie: b"}});
  EXPECT_THAT(head, StartsWith("HTTP/1.1 499 Client Closed Request\r\n"
                               "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"));
  EXPECT_THAT(head, HasSubstr("x-request-id: a  Set-Cookie: b\r\n"));
}

}  // namespace
}  // namespace penstock
