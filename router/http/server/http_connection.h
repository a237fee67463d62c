#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/steady_timer.hpp"
#include "boost/beast/core/flat_buffer.hpp"
#include "boost/beast/http/parser.hpp"
#include "boost/beast/http/string_body.hpp"
#include "common/runtime/inbox.h"
#include "router/core/http_probe.h"
#include "router/http/server/http_exchange.h"
#include "router/http/server/http_server.h"

namespace penstock {

class HttpConnection;

// What the connections of a server share. Exchanges keep it alive, so that what
// they post later goes nowhere rather than into freed memory. Members below the
// line belong to the server's thread; those above are set before it runs.
struct HttpHost {
  HttpLimits limits;
  HttpHandler handler;
  std::shared_ptr<Inbox> loop;
  HttpProbe* probe = nullptr;
  boost::asio::io_context io{1};
  std::weak_ptr<HttpHost> self;

  // Runs it on the server's thread. Any thread: what one round of a loop gives
  // to many connections wakes the server's thread once.
  void Post(absl::AnyInvocable<void()> task);
  void RunTasks();
  std::mutex mutex;
  std::vector<absl::AnyInvocable<void()>> tasks;  // guarded by mutex
  // ---
  bool in_round = false;                                  // of tasks
  std::vector<std::shared_ptr<HttpConnection>> to_write;  // after it
  bool draining = false;  // no answer keeps its connection
  bool stopping = false;  // a connection without a request closes
  std::set<std::shared_ptr<HttpConnection>> connections;
  std::function<void()> on_empty;  // when the last of them has gone
};

// One client's socket: reads a request, hands it over, writes the answer, and
// so on. Lives on the server's thread.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  // The host outlives its connections.
  HttpConnection(HttpHost* host, boost::asio::ip::tcp::socket socket);

  void Start();
  // Answers that there are too many of its kind, and closes.
  void TurnAway();
  // Closes when no request is under way; else after its answer.
  void CloseWhenIdle();
  void Close(const absl::Status& why);
  // Writes what was queued during a round of tasks.
  void Flush();

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
  void Queue(std::string bytes);
  void Write();
  void OnWrite(const Error& error, size_t bytes);
  // So many bytes of what is queued are the kernel's.
  void Took(size_t bytes);
  void OnWritten();
  void PeerLeft(const Error& error);
  void Linger();
  void TellLoop(const absl::Status& status);

  // One deadline for reading, one for writing; setting it replaces it.
  void SetReadDeadline(absl::Duration after, std::function<void()> then);
  void SetWriteDeadline();
  void ClearReadDeadline();

  HttpHost* const host_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer read_timer_, write_timer_;
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
  std::deque<std::string> out_;
  size_t out_offset_ = 0;  // written of the first
  size_t queued_ = 0;      // bytes in out_ that are not written
  bool flushes_ = false;   // Flush will be called
  bool writing_ = false;
};

}  // namespace penstock
