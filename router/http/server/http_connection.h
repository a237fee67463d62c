#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/steady_timer.hpp"
#include "boost/beast/core/flat_buffer.hpp"
#include "boost/beast/http/parser.hpp"
#include "boost/beast/http/string_body.hpp"
#include "router/http/server/http_exchange.h"
#include "router/http/server/http_host.h"
#include "router/http/server/http_output.h"

namespace penstock {

// One client's socket: reads a request, hands it over, writes the answer, and
// so on. Lives on the server's thread.
class HttpConnection : public std::enable_shared_from_this<HttpConnection>,
                       private HttpOutput::Owner {
 public:
  // The host outlives its connections.
  HttpConnection(HttpHost* host, boost::asio::ip::tcp::socket socket);

  void Start();
  // Answers that there are too many of its kind, and closes.
  void TurnAway();
  // Closes when no request is under way; else after its answer.
  void CloseWhenIdle();
  void Close(const absl::Status& why);

 private:
  class Exchange;
  // The handler's end of an exchange: the loop's own.
  struct LoopEnd {
    std::unique_ptr<HttpCall> call;
  };
  enum class State { kIdle, kReading, kAnswering, kLingering, kClosed };
  using Parser =
      boost::beast::http::request_parser<boost::beast::http::string_body>;
  using Error = boost::system::error_code;

  void AwaitRequest();
  void Read();
  void OnRead(const Error& error, size_t bytes);
  void ReadHeader();
  void OnHeader(const Error& error);
  void ReadBody();
  void OnBody(const Error& error);
  void OnReadError(const Error& error);
  HttpRequest TakeRequest();
  void Dispatch();

  // Of the exchange under way; `id` tells it from earlier ones.
  void Respond(uint64_t id, HttpResponse response);
  void Begin(uint64_t id, int status, const HttpHeaders& headers);
  void Send(uint64_t id, absl::string_view piece);
  void End(uint64_t id);
  void Abandon(uint64_t id);

  // An error of HTTP itself, before there is an exchange; closes.
  void Refuse(int status, absl::string_view message, absl::string_view code);
  // Ends the connection for a reason that metrics count.
  void Cut(absl::string_view reason);
  std::string Head(int status, const HttpHeaders& headers,
                   std::optional<uint64_t> content_length) const;
  // An answer that has ended is written.
  void OnWritten();
  void PeerLeft(const Error& error);
  void Linger();
  void TellLoop(const absl::Status& status);

  void OnOutputEmpty() override;
  void OnWriteError(const Error& error) override;
  void OnClientStuck() override;
  std::shared_ptr<void> KeepAlive() override { return shared_from_this(); }

  // The deadline for reading; setting it replaces it.
  void SetReadDeadline(absl::Duration after, std::function<void()> then);
  void ClearReadDeadline();

  HttpHost* const host_;
  boost::asio::ip::tcp::socket socket_;
  HttpOutput output_;
  boost::asio::steady_timer read_timer_;
  uint64_t read_deadline_ = 0;  // counts settings: an older one is void
  State state_ = State::kIdle;

  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  bool reading_ = false;           // Read is under way; then buffer_ is empty
  const char* expired_ = nullptr;  // which deadline ended the reading
  size_t lingered_ = 0;            // bytes thrown away since the last answer

  uint64_t exchange_ = 0;  // 0: none
  uint64_t next_exchange_ = 1;
  std::shared_ptr<LoopEnd> loop_end_;
  bool keep_alive_ = true;
  bool http_1_0_ = false;
  bool head_only_ = false;
  bool begun_ = false;  // its head is queued
  bool ended_ = false;  // all of it is queued
};

}  // namespace penstock
