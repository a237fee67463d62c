#include "common/rpc/services.h"

#include <utility>

#include "common/rpc/leg_streams.h"
#include "common/rpc/stream_reactor.h"
#include "protos/handoff.grpc.pb.h"
#include "protos/inference.grpc.pb.h"
#include "protos/kvstore.grpc.pb.h"
#include "protos/worker.grpc.pb.h"

namespace penstock {
namespace {

using grpc::ByteBuffer;
using grpc::CallbackServerContext;

// Streams to clients are short; those between peers carry many transfers.
constexpr StreamLimits kPeerLimits{1 << 16, 64 << 20};

using RawInference = v1::Inference::WithRawCallbackMethod_Generate<
    v1::Inference::WithRawCallbackMethod_Tokenize<
        v1::Inference::WithRawCallbackMethod_Detokenize<
            v1::Inference::WithRawCallbackMethod_GetModelInfo<
                v1::Inference::WithRawCallbackMethod_Abort<
                    v1::Inference::Service>>>>>;

class InferenceService : public GrpcService, public RawInference {
 public:
  InferenceService(InferenceMethods methods, std::shared_ptr<Inbox> loop,
                   std::shared_ptr<Inbox> encoder)
      : methods_(std::move(methods)),
        loop_(std::move(loop)),
        encoder_(std::move(encoder)) {}

  const char* name() const override {
    return v1::Inference::service_full_name();
  }
  grpc::Service* service() override { return this; }

  grpc::ServerWriteReactor<ByteBuffer>* Generate(
      CallbackServerContext* context, const ByteBuffer* request) override {
    return AcceptServerStream(context, request, loop_, {}, methods_.generate);
  }
  grpc::ServerUnaryReactor* Tokenize(CallbackServerContext* context,
                                     const ByteBuffer* request,
                                     ByteBuffer* response) override {
    return AcceptUnary(context, request, response, encoder_, methods_.tokenize);
  }
  grpc::ServerUnaryReactor* Detokenize(CallbackServerContext* context,
                                       const ByteBuffer* request,
                                       ByteBuffer* response) override {
    return AcceptUnary(context, request, response, encoder_,
                       methods_.detokenize);
  }
  grpc::ServerUnaryReactor* GetModelInfo(CallbackServerContext* context,
                                         const ByteBuffer* request,
                                         ByteBuffer* response) override {
    return AcceptUnary(context, request, response, loop_,
                       methods_.get_model_info);
  }
  grpc::ServerUnaryReactor* Abort(CallbackServerContext* context,
                                  const ByteBuffer* request,
                                  ByteBuffer* response) override {
    return AcceptUnary(context, request, response, loop_, methods_.abort);
  }

 private:
  const InferenceMethods methods_;
  const std::shared_ptr<Inbox> loop_;
  const std::shared_ptr<Inbox> encoder_;
};

class WorkerService : public GrpcService,
                      public v1::WorkerService::WithRawCallbackMethod_Legs<
                          v1::WorkerService::Service> {
 public:
  WorkerService(WorkerMethods methods, std::shared_ptr<Inbox> loop)
      : legs_(ServeLegs(std::move(methods), loop)), loop_(std::move(loop)) {}

  const char* name() const override {
    return v1::WorkerService::service_full_name();
  }
  grpc::Service* service() override { return this; }

  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* Legs(
      CallbackServerContext* context) override {
    return AcceptBidiStream(context, loop_, kPeerLimits, legs_);
  }

 private:
  const StreamMethod legs_;
  const std::shared_ptr<Inbox> loop_;
};

class HandoffService : public GrpcService,
                       public v1::HandoffService::WithRawCallbackMethod_Pair<
                           v1::HandoffService::Service> {
 public:
  HandoffService(StreamMethod pair, std::shared_ptr<Inbox> loop)
      : pair_(std::move(pair)), loop_(std::move(loop)) {}

  const char* name() const override {
    return v1::HandoffService::service_full_name();
  }
  grpc::Service* service() override { return this; }

  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* Pair(
      CallbackServerContext* context) override {
    return AcceptBidiStream(context, loop_, kPeerLimits, pair_);
  }

 private:
  const StreamMethod pair_;
  const std::shared_ptr<Inbox> loop_;
};

class RegistryService
    : public GrpcService,
      public v1::RouterRegistry::WithRawCallbackMethod_Register<
          v1::RouterRegistry::Service> {
 public:
  RegistryService(StreamMethod register_worker, std::shared_ptr<Inbox> loop)
      : register_(std::move(register_worker)), loop_(std::move(loop)) {}

  const char* name() const override {
    return v1::RouterRegistry::service_full_name();
  }
  grpc::Service* service() override { return this; }

  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* Register(
      CallbackServerContext* context) override {
    return AcceptBidiStream(context, loop_, kPeerLimits, register_);
  }

 private:
  const StreamMethod register_;
  const std::shared_ptr<Inbox> loop_;
};

class KvStoreService
    : public GrpcService,
      public v1::KvStore::WithRawCallbackMethod_Attach<
          v1::KvStore::WithRawCallbackMethod_GetStats<v1::KvStore::Service>> {
 public:
  KvStoreService(KvStoreMethods methods, std::shared_ptr<Inbox> loop)
      : methods_(std::move(methods)), loop_(std::move(loop)) {}

  const char* name() const override { return v1::KvStore::service_full_name(); }
  grpc::Service* service() override { return this; }

  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* Attach(
      CallbackServerContext* context) override {
    return AcceptBidiStream(context, loop_, kPeerLimits, methods_.attach);
  }
  grpc::ServerUnaryReactor* GetStats(CallbackServerContext* context,
                                     const ByteBuffer* request,
                                     ByteBuffer* response) override {
    return AcceptUnary(context, request, response, loop_, methods_.get_stats);
  }

 private:
  const KvStoreMethods methods_;
  const std::shared_ptr<Inbox> loop_;
};

}  // namespace

std::unique_ptr<RpcService> MakeInferenceService(
    InferenceMethods methods, std::shared_ptr<Inbox> loop,
    std::shared_ptr<Inbox> encoder) {
  return std::make_unique<InferenceService>(std::move(methods), std::move(loop),
                                            std::move(encoder));
}

std::unique_ptr<RpcService> MakeWorkerService(WorkerMethods methods,
                                              std::shared_ptr<Inbox> loop) {
  return std::make_unique<WorkerService>(std::move(methods), std::move(loop));
}

std::unique_ptr<RpcService> MakeHandoffService(StreamMethod pair,
                                               std::shared_ptr<Inbox> loop) {
  return std::make_unique<HandoffService>(std::move(pair), std::move(loop));
}

std::unique_ptr<RpcService> MakeKvStoreService(KvStoreMethods methods,
                                               std::shared_ptr<Inbox> loop) {
  return std::make_unique<KvStoreService>(std::move(methods), std::move(loop));
}

std::unique_ptr<RpcService> MakeRegistryService(StreamMethod register_worker,
                                                std::shared_ptr<Inbox> loop) {
  return std::make_unique<RegistryService>(std::move(register_worker),
                                           std::move(loop));
}

}  // namespace penstock
