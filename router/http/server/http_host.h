#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "boost/asio/io_context.hpp"
#include "common/runtime/inbox.h"
#include "router/core/http_probe.h"
#include "router/http/server/http_exchange.h"
#include "router/http/server/http_server.h"

namespace penstock {

class HttpConnection;
class HttpOutput;

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
  bool in_round = false;                              // of tasks
  std::vector<std::shared_ptr<HttpOutput>> to_flush;  // after it
  bool draining = false;  // no answer keeps its connection
  bool stopping = false;  // a connection without a request closes
  std::set<std::shared_ptr<HttpConnection>> connections;
  std::function<void()> on_empty;  // when the last of them has gone
};

}  // namespace penstock
