#pragma once

#include <unistd.h>

#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/env/real/monotonic_clock.h"
#include "common/model/files/testing/tiny_llama.h"
#include "common/peer/error_reason.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/leg_wire.h"
#include "common/rpc/server.h"
#include "common/rpc/worker_wire.h"
#include "common/runtime/loop_thread.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "protos/inference.grpc.pb.h"
#include "router/server/router_server.h"

namespace penstock {

inline constexpr std::chrono::seconds kPatience(30);
inline constexpr int kContext = 512;  // of the tiny model

// True when `done` became true in time. Each try of a test here is a call to
// a server, so this does not spin.
inline bool Eventually(const std::function<bool()>& done) {
  const absl::Time give_up = absl::Now() + absl::FromChrono(kPatience);
  while (!done()) {
    if (absl::Now() > give_up) return false;
  }
  return true;
}

// A worker as the router meets it: its Decode does what the test says, and a
// stream registers it.
class FakeWorker {
 public:
  using Decode = std::function<std::unique_ptr<StreamHandler>(
      LegRequest, std::shared_ptr<Stream>)>;

  FakeWorker(const Clock& clock, std::string name, Decode decode)
      : loop_(clock, {.name = "worker"}), decode_(std::move(decode)) {
    loop_.Start(nullptr);
    auto method = [this](const CallInfo&, std::string request,
                         std::shared_ptr<Stream> stream) {
      auto leg = DecodeLegRequest(request);
      // A call that was cancelled at once arrives without its message.
      if (!leg.ok()) {
        stream->Close(leg.status());
        return std::unique_ptr<StreamHandler>();
      }
      return decode_(*std::move(leg), std::move(stream));
    };
    std::vector<std::unique_ptr<RpcService>> services;
    services.push_back(MakeWorkerService({method, method}, loop_.inbox()));
    auto server =
        RpcServer::Start({.address = "127.0.0.1:0"}, std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    info_.key = {std::move(name), Incarnation(77)};
    info_.roles = {false, true};
    info_.control_address = server_->address();
    info_.model = "tiny";
    info_.layout = LayoutId(5);
    info_.numerics = NumericsId(6);
    info_.context_length = kContext;
    info_.total_blocks = 64;
    info_.max_sequences = 8;
    info_.transports = {TransportKind::kTcp};
  }
  ~FakeWorker() {
    server_->Shutdown(absl::ZeroDuration());
    loop_.Stop();
  }

  WorkerInfo& info() { return info_; }
  // Sent before it says that it is ready.
  CacheSnapshot& cached() { return cached_; }

  // Registers and says that it is ready.
  void Register(const std::string& router) {
    channel_ = RpcChannel::Open(router);
    stream_ = channel_->Start(
        kRegisterMethod, std::make_unique<Registration>(this), loop_.inbox());
    stream_->Send(EncodeWorkerMessage(info_));
    if (!cached_.chains.empty()) stream_->Send(EncodeWorkerMessage(cached_));
    WorkerLoad load;
    load.health = WorkerHealth::kReady;
    load.free_blocks = load.total_blocks = info_.total_blocks;
    stream_->Send(EncodeWorkerMessage(load));
  }

  void Leave() { stream_->Close(absl::CancelledError("leaving")); }

  absl::Status WaitRegistrationEnded() {
    auto ended = ended_.get_future();
    if (ended.wait_for(kPatience) != std::future_status::ready) {
      return absl::DeadlineExceededError("still registered");
    }
    return ended.get();
  }

 private:
  class Registration : public StreamHandler {
   public:
    explicit Registration(FakeWorker* worker) : worker_(worker) {}
    void OnMessage(std::string) override {}
    void OnClosed(const absl::Status& status) override {
      worker_->ended_.set_value(status);
    }

   private:
    FakeWorker* const worker_;
  };

  LoopThread loop_;
  const Decode decode_;
  WorkerInfo info_;
  CacheSnapshot cached_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<RpcChannel> channel_;
  std::shared_ptr<Stream> stream_;
  std::promise<absl::Status> ended_;
};

inline TokenFrame Frame(const LegRequest& leg, int first, FinishReason finish) {
  TokenFrame frame;
  frame.attempt = leg.attempt;
  frame.first_index = first;
  frame.tokens.push_back({40 + first, absl::StrCat("t", first), {}});
  frame.finish = finish;
  frame.usage = {static_cast<int>(leg.request.prompt.size()), 0, first + 1};
  return frame;
}

// Two tokens and a good end.
inline std::unique_ptr<StreamHandler> AnswerTwo(
    LegRequest leg, std::shared_ptr<Stream> stream) {
  stream->Send(EncodeLegEvent(LegAccepted{}));
  stream->Send(EncodeLegEvent(Frame(leg, 0, FinishReason::kNone)));
  stream->Send(EncodeLegEvent(Frame(leg, 1, FinishReason::kLength)));
  stream->Close(absl::OkStatus());
  return nullptr;
}

// One token, then silence; remembers how the first such leg ended. A test may
// cause more of them: a request that waited starts when the one before goes.
struct Hanging {
  std::promise<std::shared_ptr<Stream>> started;
  std::promise<absl::Status> ended;
  int legs = 0;  // the worker loop's
};
class HangingLeg : public StreamHandler {
 public:
  HangingLeg(std::shared_ptr<Hanging> state, bool first)
      : state_(std::move(state)), first_(first) {}
  void OnMessage(std::string) override {}
  void OnClosed(const absl::Status& status) override {
    if (first_) state_->ended.set_value(status);
  }

 private:
  const std::shared_ptr<Hanging> state_;
  const bool first_;
};
inline FakeWorker::Decode Hang(std::shared_ptr<Hanging> state) {
  return [state](
             LegRequest leg,
             std::shared_ptr<Stream> stream) -> std::unique_ptr<StreamHandler> {
    stream->Send(EncodeLegEvent(LegAccepted{}));
    stream->Send(EncodeLegEvent(Frame(leg, 0, FinishReason::kNone)));
    const bool first = ++state->legs == 1;
    if (first) state->started.set_value(std::move(stream));
    return std::make_unique<HangingLeg>(state, first);
  };
}

class RouterServerTest : public testing::Test {
 protected:
  RouterServerTest() {
    path_ = absl::StrCat(testing::TempDir(), "/router_server_test_", getpid(),
                         ".gguf");
    const std::vector<uint8_t> bytes = MakeTinyLlama().Encode();
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    content_ = (*OpenModelFile(path_))->spec().content;
    options_.model = path_;
    options_.model_name = "tiny";
    options_.listen.grpc = options_.listen.http = "127.0.0.1:0";
  }
  ~RouterServerTest() override { unlink(path_.c_str()); }

  void Start() {
    auto router = RouterServer::Start(options_, clock_, &probe_);
    ASSERT_TRUE(router.ok()) << router.status();
    router_ = *std::move(router);
    stub_ = v1::Inference::NewStub(grpc::CreateChannel(
        router_->address(), grpc::InsecureChannelCredentials()));
  }

  std::unique_ptr<FakeWorker> AddWorker(FakeWorker::Decode decode) {
    auto worker =
        std::make_unique<FakeWorker>(clock_, "decode-0", std::move(decode));
    worker->info().content = content_;
    worker->Register(router_->address());
    EXPECT_TRUE(Eventually([&] { return Info().decode_workers() == 1; }));
    return worker;
  }

  v1::GetModelInfoResponse Info() {
    grpc::ClientContext context;
    v1::GetModelInfoResponse info;
    EXPECT_TRUE(stub_->GetModelInfo(&context, {}, &info).ok());
    return info;
  }

  // What a whole call gives.
  struct Outcome {
    std::vector<v1::GenerateResponse> responses;
    absl::Status status;
    std::string request_id;  // of the headers
  };
  Outcome Generate(const v1::GenerateRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    auto reader = stub_->Generate(&context, request);
    Outcome outcome;
    v1::GenerateResponse response;
    while (reader->Read(&response)) outcome.responses.push_back(response);
    outcome.status = FromGrpc(reader->Finish());
    const auto& headers = context.GetServerInitialMetadata();
    const auto id = headers.find("x-request-id");
    if (id != headers.end()) {
      outcome.request_id = std::string(id->second.data(), id->second.size());
    }
    return outcome;
  }

  static v1::GenerateRequest Ids(int count) {
    v1::GenerateRequest request;
    for (int i = 0; i < count; ++i) request.mutable_ids()->add_ids(3);
    return request;
  }

  MonotonicClock clock_;
  NullRouterProbe probe_;
  RouterOptions options_;
  std::string path_;
  ContentId content_;
  std::unique_ptr<RouterServer> router_;
  std::unique_ptr<v1::Inference::Stub> stub_;
};

inline bool StopNow() { return true; }
inline bool Wait() { return false; }

}  // namespace penstock
