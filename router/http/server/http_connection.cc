#include "router/http/server/http_connection.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "boost/asio/post.hpp"
#include "boost/beast/http/error.hpp"
#include "boost/beast/http/read.hpp"
#include "router/http/openai/http_error.h"
#include "router/http/server/request_path.h"
#include "router/http/server/response_text.h"

namespace penstock {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;

constexpr size_t kReadBytes = 4096;
// After the last answer of a connection, what the client still sends is thrown
// away for a while: closing at once could destroy the answer under way.
constexpr absl::Duration kLinger = absl::Seconds(2);
constexpr size_t kLingerBytes = size_t{64} << 20;

absl::string_view View(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

// Posts what it is told to the server's thread.
class HttpConnection::Exchange : public HttpExchange {
 public:
  Exchange(std::shared_ptr<HttpHost> host,
           std::weak_ptr<HttpConnection> connection, uint64_t id)
      : host_(std::move(host)), connection_(std::move(connection)), id_(id) {}

  ~Exchange() override {
    Post([](HttpConnection& c, uint64_t id) { c.Abandon(id); });
  }

  void Respond(HttpResponse response) override {
    Post([response = std::move(response)](HttpConnection& c,
                                          uint64_t id) mutable {
      c.Respond(id, std::move(response));
    });
  }
  void Begin(int status, HttpHeaders headers) override {
    Post([status, headers = std::move(headers)](
             HttpConnection& c, uint64_t id) { c.Begin(id, status, headers); });
  }
  void Send(std::string piece) override {
    Post([piece = std::move(piece)](HttpConnection& c, uint64_t id) {
      c.Send(id, piece);
    });
  }
  void End() override {
    Post([](HttpConnection& c, uint64_t id) { c.End(id); });
  }

 private:
  template <typename F>
  void Post(F act) {
    host_->Post([weak = connection_, id = id_, act = std::move(act)]() mutable {
      if (auto connection = weak.lock()) act(*connection, id);
    });
  }

  const std::shared_ptr<HttpHost> host_;
  const std::weak_ptr<HttpConnection> connection_;
  const uint64_t id_;
};

HttpConnection::HttpConnection(HttpHost* host, Tcp::socket socket)
    : host_(host),
      socket_(std::move(socket)),
      output_(host, &socket_, this),
      read_timer_(host->io),
      // Beast reads bodies through it in steps of 64 KiB.
      buffer_(host->limits.max_header_bytes + (size_t{128} << 10)) {
  Error ignored;
  socket_.set_option(Tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  // What the kernel keeps for a client that does not read is bounded too.
  socket_.set_option(asio::socket_base::send_buffer_size(
                         static_cast<int>(host->limits.max_queued_bytes)),
                     ignored);
  // Finds peers that are gone while nothing is written.
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
}

void HttpConnection::Start() { AwaitRequest(); }

void HttpConnection::TurnAway() {
  host_->probe->ConnectionCut("full");
  Refuse(503, "too many connections are open here; try again later",
         "too_many_connections");
}

void HttpConnection::CloseWhenIdle() {
  if (state_ == State::kIdle) Close(absl::OkStatus());
}

void HttpConnection::AwaitRequest() {
  state_ = State::kIdle;
  parser_.reset();
  if (buffer_.size() > 0) return ReadHeader();
  if (host_->stopping) return Close(absl::OkStatus());
  SetReadDeadline(host_->limits.idle_timeout,
                  [this] { Close(absl::OkStatus()); });
  Read();
}

void HttpConnection::Read() {
  if (reading_) return;
  reading_ = true;
  socket_.async_read_some(
      buffer_.prepare(kReadBytes),
      [self = shared_from_this()](const Error& error, size_t bytes) {
        self->OnRead(error, bytes);
      });
}

void HttpConnection::OnRead(const Error& error, size_t bytes) {
  reading_ = false;
  switch (state_) {
    case State::kClosed:
    case State::kReading:
      return;
    case State::kIdle:
      if (error) return Close(absl::OkStatus());
      buffer_.commit(bytes);
      return ReadHeader();
    case State::kAnswering:
      if (error) return PeerLeft(error);
      // The next request of a client that does not wait. From here on its
      // leaving is noticed by writing only.
      buffer_.commit(bytes);
      return;
    case State::kLingering:
      lingered_ += bytes;
      if (error || lingered_ > kLingerBytes) return Close(absl::OkStatus());
      return Read();
  }
}

void HttpConnection::ReadHeader() {
  state_ = State::kReading;
  parser_.emplace();
  parser_->header_limit(
      static_cast<std::uint32_t>(host_->limits.max_header_bytes));
  parser_->body_limit(host_->limits.max_body_bytes);
  SetReadDeadline(host_->limits.header_timeout, [this] {
    expired_ = "header_timeout";
    socket_.cancel();
  });
  http::async_read_header(
      socket_, buffer_, *parser_,
      [self = shared_from_this()](const Error& error, size_t) {
        self->OnHeader(error);
      });
}

void HttpConnection::OnHeader(const Error& error) {
  if (state_ == State::kClosed) return;
  if (error) return OnReadError(error);
  const auto& header = parser_->get();
  http_1_0_ = header.version() < 11;
  keep_alive_ = header.keep_alive();
  head_only_ = header.method() == http::verb::head;
  const absl::string_view expect = View(header[http::field::expect]);
  if (!expect.empty() && !absl::EqualsIgnoreCase(expect, "100-continue")) {
    return Refuse(417, "Expect may be 100-continue only", "bad_expect");
  }
  if (parser_->is_done()) return Dispatch();
  if (!expect.empty() && !http_1_0_) {
    output_.Queue("HTTP/1.1 100 Continue\r\n\r\n");
  }
  ReadBody();
}

void HttpConnection::ReadBody() {
  SetReadDeadline(host_->limits.body_timeout, [this] {
    expired_ = "body_timeout";
    socket_.cancel();
  });
  http::async_read(socket_, buffer_, *parser_,
                   [self = shared_from_this()](const Error& error, size_t) {
                     self->OnBody(error);
                   });
}

void HttpConnection::OnBody(const Error& error) {
  if (state_ == State::kClosed) return;
  if (error) return OnReadError(error);
  Dispatch();
}

void HttpConnection::OnReadError(const Error& error) {
  if (expired_ != nullptr) {
    host_->probe->ConnectionCut(expired_);
    return Refuse(408, "the request did not come whole in time",
                  "request_timeout");
  }
  const auto& category =
      http::make_error_code(http::error::end_of_stream).category();
  // The client left, at once or in the middle of its request.
  if (error.category() != category || error == http::error::end_of_stream ||
      error == http::error::partial_message) {
    return Close(absl::OkStatus());
  }
  if (error == http::error::body_limit) {
    return Refuse(413,
                  absl::StrCat("the body is larger than ",
                               host_->limits.max_body_bytes, " bytes"),
                  "body_too_large");
  }
  if (error == http::error::header_limit ||
      error == http::error::buffer_overflow) {
    return Refuse(431,
                  absl::StrCat("the headers are larger than ",
                               host_->limits.max_header_bytes, " bytes"),
                  "headers_too_large");
  }
  Refuse(400, absl::StrCat("this is not HTTP/1.1: ", error.message()),
         "bad_request");
}

HttpRequest HttpConnection::TakeRequest() {
  auto& message = parser_->get();
  HttpRequest request;
  request.method =
      head_only_ ? "GET" : std::string(View(message.method_string()));
  request.path = RequestPath(View(message.target()));
  request.content_type = std::string(View(message[http::field::content_type]));
  request.request_id = std::string(View(message["x-request-id"]));
  request.traceparent = std::string(View(message["traceparent"]));
  request.authorization =
      std::string(View(message[http::field::authorization]));
  request.tenant = std::string(View(message["x-tenant-id"]));
  request.body = std::move(message.body());
  return request;
}

void HttpConnection::Dispatch() {
  ClearReadDeadline();
  state_ = State::kAnswering;
  begun_ = ended_ = false;
  exchange_ = next_exchange_++;
  loop_end_ = std::make_shared<LoopEnd>();
  auto exchange = std::make_shared<Exchange>(host_->self.lock(),
                                             weak_from_this(), exchange_);
  const bool posted =
      host_->loop->TryPost([host = host_->self.lock(), end = loop_end_,
                            request = TakeRequest(), exchange]() mutable {
        end->call = host->handler(std::move(request), std::move(exchange));
      });
  parser_.reset();
  if (!posted) {
    const HttpError error =
        PlainHttpError(503, "too much waits here; try again", "overloaded");
    exchange->Respond(
        {error.status,
         {{"Content-Type", "application/json"}, {"Retry-After", "1"}},
         DumpJson(error.body)});
  }
  if (buffer_.size() == 0) Read();
}

void HttpConnection::TellLoop(const absl::Status& status) {
  exchange_ = 0;
  std::shared_ptr<LoopEnd> end = std::exchange(loop_end_, nullptr);
  if (end == nullptr) return;
  host_->loop->Post([end = std::move(end), status] {
    if (end->call != nullptr) end->call->OnClosed(status);
    end->call = nullptr;
  });
}

std::string HttpConnection::Head(int status, const HttpHeaders& headers,
                                 std::optional<uint64_t> length) const {
  // Told a little less than what holds, so that the client gives it up first.
  const absl::Duration idle = host_->limits.idle_timeout;
  return WriteHead(
      {.status = status,
       .http_1_0 = http_1_0_,
       .keep_alive = keep_alive_,
       .keep_alive_timeout =
           std::max(idle - absl::Seconds(5), std::min(idle, absl::Seconds(1))),
       .content_length = length,
       .now = absl::Now()},
      headers);
}

void HttpConnection::Respond(uint64_t id, HttpResponse response) {
  if (id != exchange_ || begun_) return;
  begun_ = ended_ = true;
  if (host_->draining || host_->stopping) keep_alive_ = false;
  output_.Queue(Head(response.status, response.headers, response.body.size()));
  if (!head_only_) output_.Queue(std::move(response.body));
  OnWritten();
}

void HttpConnection::Begin(uint64_t id, int status,
                           const HttpHeaders& headers) {
  if (id != exchange_ || begun_) return;
  begun_ = true;
  // Only the connection's end shows where such an answer ends.
  if (http_1_0_ || host_->draining || host_->stopping) keep_alive_ = false;
  output_.Queue(Head(status, headers, std::nullopt));
}

void HttpConnection::Send(uint64_t id, absl::string_view piece) {
  if (id != exchange_ || !begun_ || ended_ || head_only_) return;
  // What waits, not how much comes at once, shows a reader to be slow.
  if (output_.bytes() > host_->limits.max_queued_bytes) {
    return Cut("slow_reader");
  }
  output_.Queue(http_1_0_ ? std::string(piece) : WriteChunk(piece));
}

void HttpConnection::End(uint64_t id) {
  if (id != exchange_ || !begun_ || ended_) return;
  ended_ = true;
  if (!http_1_0_ && !head_only_) output_.Queue(std::string(kLastChunk));
  OnWritten();
}

void HttpConnection::Abandon(uint64_t id) {
  if (id != exchange_ || ended_) return;
  Close(absl::UnavailableError("nobody answered"));
}

void HttpConnection::Refuse(int status, absl::string_view message,
                            absl::string_view code) {
  ClearReadDeadline();
  const HttpError error = PlainHttpError(status, message, code);
  host_->probe->HttpAnswered("refused", status);
  state_ = State::kAnswering;
  keep_alive_ = false;
  begun_ = ended_ = true;
  const std::string body = DumpJson(error.body);
  output_.Queue(
      Head(status, {{"Content-Type", "application/json"}}, body.size()));
  if (!head_only_) output_.Queue(body);
}

void HttpConnection::Cut(absl::string_view reason) {
  host_->probe->ConnectionCut(reason);
  Close(absl::ResourceExhaustedError(absl::StrCat("cut off: ", reason)));
}

void HttpConnection::OnOutputEmpty() {
  if (!ended_) return;
  // Not from inside the call: more may be about to be queued.
  asio::post(host_->io, [self = shared_from_this()] { self->OnWritten(); });
}

void HttpConnection::OnWritten() {
  if (!ended_ || !output_.empty() || state_ != State::kAnswering) return;
  TellLoop(absl::OkStatus());
  if (keep_alive_) {
    AwaitRequest();
  } else {
    Linger();
  }
}

void HttpConnection::OnWriteError(const Error& error) { PeerLeft(error); }

void HttpConnection::OnClientStuck() { Cut("slow_reader"); }

void HttpConnection::PeerLeft(const Error& error) {
  // It may have closed its side only, and still read what is on its way.
  if (error == asio::error::eof && ended_) {
    keep_alive_ = false;
    return;
  }
  Close(absl::CancelledError("the client left"));
}

void HttpConnection::Linger() {
  state_ = State::kLingering;
  Error ignored;
  socket_.shutdown(Tcp::socket::shutdown_send, ignored);
  if (!reading_) buffer_.consume(buffer_.size());
  SetReadDeadline(kLinger, [this] { Close(absl::OkStatus()); });
  Read();
}

void HttpConnection::Close(const absl::Status& why) {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  ClearReadDeadline();
  output_.Close();
  Error ignored;
  socket_.close(ignored);
  TellLoop(why);
  host_->connections.erase(shared_from_this());
  host_->probe->ConnectionsOpen(static_cast<int>(host_->connections.size()));
  if (host_->connections.empty() && host_->on_empty) host_->on_empty();
}

void HttpConnection::SetReadDeadline(absl::Duration after,
                                     std::function<void()> then) {
  const uint64_t deadline = ++read_deadline_;
  read_timer_.expires_after(absl::ToChronoMilliseconds(after));
  read_timer_.async_wait([self = shared_from_this(), deadline,
                          then = std::move(then)](const Error& error) {
    if (!error && deadline == self->read_deadline_) then();
  });
}

void HttpConnection::ClearReadDeadline() {
  ++read_deadline_;
  read_timer_.cancel();
}

}  // namespace penstock
