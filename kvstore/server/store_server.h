#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/env/real/monotonic_clock.h"
#include "common/rpc/server.h"
#include "common/rpc/store_wire.h"
#include "common/rpc/stream.h"
#include "common/runtime/loop_thread.h"
#include "kvstore/server/store_host.h"

namespace penstock {

// The store as a service: gRPC for control (KvStore, health, reflection), pages
// over its transports. Owned by main. Methods may be called from any thread but
// its loop.
class StoreServer {
 public:
  struct Options {
    std::string listen = "127.0.0.1:0";
    StoreHostOptions host;
  };
  // Hears on the loop, from time to time, what the store is like.
  using Observer = std::function<void(const StoreReport&)>;

  // UNAVAILABLE: the address is taken.
  static absl::StatusOr<std::unique_ptr<StoreServer>> Start(
      Options options, Observer observer = nullptr);
  ~StoreServer();

  // Grants nothing more and waits for what is under way, at most `limit`; true
  // when everything had ended.
  bool Drain(absl::Duration limit);

  const std::string& address() const { return server_->address(); }
  StoreReport Report();

 private:
  class Session;

  StoreServer(Options options, Observer observer);
  absl::Status StartServer();
  std::unique_ptr<StreamHandler> Attach(std::shared_ptr<Stream> stream);
  absl::StatusOr<StoreCore::SessionId> Welcome(
      const StoreHello& hello, const std::shared_ptr<Stream>& stream);
  // Of the loop.
  StoreReport Look();
  void Observe();
  void Tick();

  const Options options_;
  const Observer observer_;
  const MonotonicClock clock_;
  LoopThread loop_;
  std::unique_ptr<StoreHost> host_;
  std::unique_ptr<RpcServer> server_;

  std::mutex mutex_;
  std::condition_variable drained_changed_;
  bool drained_ = false;   // guarded by mutex_
  bool draining_ = false;  // the loop's
};

}  // namespace penstock
