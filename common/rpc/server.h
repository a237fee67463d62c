#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/stream.h"
#include "common/runtime/inbox.h"

namespace penstock {

// One service of a server: its methods, as tasks of a loop.
class RpcService {
 public:
  virtual ~RpcService() = default;
  virtual const char* name() const = 0;  // "penstock.v1.Inference"
};

struct InferenceMethods {
  StreamMethod generate;
  UnaryMethod tokenize;
  UnaryMethod detokenize;
  UnaryMethod get_model_info;
  UnaryMethod abort;
};
// The stream and get_model_info and abort are tasks of `loop`; tokenize and
// detokenize, which compute, of `encoder`.
std::unique_ptr<RpcService> MakeInferenceService(
    InferenceMethods methods, std::shared_ptr<Inbox> loop,
    std::shared_ptr<Inbox> encoder);

// Each leg is a call of one of them, on the loop, with a stream of its own: see
// ServeLegs.
struct WorkerMethods {
  StreamMethod prefill;
  StreamMethod decode;
};
std::unique_ptr<RpcService> MakeWorkerService(WorkerMethods methods,
                                              std::shared_ptr<Inbox> loop);
std::unique_ptr<RpcService> MakeHandoffService(StreamMethod pair,
                                               std::shared_ptr<Inbox> loop);
std::unique_ptr<RpcService> MakeRegistryService(StreamMethod register_worker,
                                                std::shared_ptr<Inbox> loop);

struct KvStoreMethods {
  StreamMethod attach;
  UnaryMethod get_stats;
};
std::unique_ptr<RpcService> MakeKvStoreService(KvStoreMethods methods,
                                               std::shared_ptr<Inbox> loop);

// A gRPC server with grpc.health.v1 and reflection. Thread-safe.
class RpcServer {
 public:
  struct Options {
    std::string address;  // "host:port"; port 0: any free one
    int max_message_bytes = 4 << 20;
    // A client that vanished without a word is found by a ping after this
    // long, which it has as long again to answer.
    absl::Duration keepalive = absl::Seconds(10);
  };
  // UNAVAILABLE when the address cannot be bound. Health says NOT_SERVING
  // until told otherwise.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const Options& options,
      std::vector<std::unique_ptr<RpcService>> services);
  virtual ~RpcServer() = default;

  // Where it listens, with the real port.
  virtual const std::string& address() const = 0;

  // Health of "" and of every service.
  virtual void SetServing(bool serving) = 0;

  // Takes no new calls; cancels what runs after `grace`; returns when all have
  // ended. Not from a loop that its methods run on.
  virtual void Shutdown(absl::Duration grace) = 0;
};

}  // namespace penstock
