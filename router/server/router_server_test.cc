#include "router/server/router_server.h"

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
#include "common/rpc/grpc_status.h"
#include "common/rpc/leg_wire.h"
#include "common/rpc/worker_wire.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "protos/inference.grpc.pb.h"
#include "router/server/testing/fake_worker.h"

namespace penstock {
namespace {

using testing::ElementsAre;

constexpr std::chrono::seconds kPatience(30);

// True when `done` became true in time. Each try of a test here is a call to
// a server, so this does not spin.
bool Eventually(const std::function<bool()>& done) {
  const absl::Time give_up = absl::Now() + absl::FromChrono(kPatience);
  while (!done()) {
    if (absl::Now() > give_up) return false;
  }
  return true;
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

bool StopNow() { return true; }
bool Wait() { return false; }

TEST_F(RouterServerTest, ServesOnceAWorkerIsReady) {
  Start();
  EXPECT_EQ(ErrorInfoOf(Generate(Ids(3)).status).reason,
            ErrorReason::kNoWorkers);
  LegRequest seen;
  auto worker = AddWorker([&](LegRequest leg, std::shared_ptr<Stream> stream) {
    seen = leg;
    return AnswerTwo(std::move(leg), std::move(stream));
  });
  v1::GenerateRequest request = Ids(3);
  request.set_request_id("mine");
  request.mutable_sampling()->set_seed(9);
  const Outcome outcome = Generate(request);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.request_id, "mine");
  ASSERT_EQ(outcome.responses.size(), 2u);
  EXPECT_EQ(outcome.responses[0].request_id(), "mine");
  EXPECT_EQ(outcome.responses[0].placement().decode(), "decode-0");
  EXPECT_EQ(outcome.responses[0].frame().tokens(0).text(), "t0");
  EXPECT_EQ(outcome.responses[1].frame().first_index(), 1u);
  EXPECT_EQ(outcome.responses[1].frame().finish(), v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(outcome.responses[1].frame().usage().completion_tokens(), 2u);
  EXPECT_FALSE(outcome.responses[1].has_placement());

  EXPECT_THAT(seen.request.prompt, ElementsAre(3, 3, 3));
  EXPECT_EQ(seen.request.sampling.seed, 9u);
  EXPECT_EQ(seen.request.model, "tiny");
  EXPECT_EQ(seen.worker_incarnation, Incarnation(77));
  // gRPC rounds deadlines up a little.
  EXPECT_LE(seen.request.timeout,
            absl::FromChrono(kPatience) + absl::Seconds(1));
  EXPECT_GT(seen.request.timeout, absl::ZeroDuration());
}

TEST_F(RouterServerTest, TheSeedFollowsFromTheRequestId) {
  Start();
  std::vector<uint64_t> seeds;
  const auto answer = [&](LegRequest leg, std::shared_ptr<Stream> stream) {
    seeds.push_back(leg.request.sampling.seed);
    return AnswerTwo(std::move(leg), std::move(stream));
  };
  auto worker = AddWorker(answer);
  const Outcome first = Generate(Ids(3));
  const Outcome second = Generate(Ids(3));
  EXPECT_NE(first.request_id, "");
  EXPECT_NE(first.request_id, second.request_id);
  // As a client does whose router died: another one gives the same answer.
  router_.reset();
  Start();
  worker = AddWorker(answer);
  v1::GenerateRequest again = Ids(3);
  again.set_request_id(first.request_id);
  EXPECT_EQ(Generate(again).request_id, first.request_id);
  ASSERT_EQ(seeds.size(), 3u);
  EXPECT_NE(seeds[0], seeds[1]);
  EXPECT_EQ(seeds[0], seeds[2]);
}

TEST_F(RouterServerTest, BadRequestsNameTheirField) {
  Start();
  auto info = [&](const std::function<void(v1::GenerateRequest&)>& change) {
    v1::GenerateRequest request = Ids(3);
    change(request);
    return ErrorInfoOf(Generate(request).status);
  };
  ErrorInfo error = info([](auto& r) { r.mutable_sampling()->set_top_p(2); });
  EXPECT_EQ(error.reason, ErrorReason::kInvalidField);
  EXPECT_EQ(error.field, "sampling.top_p");
  error = info([](auto& r) { r.mutable_stop()->add_strings(""); });
  EXPECT_EQ(error.field, "stop.strings");
  error = info([](auto& r) { r.mutable_ids()->set_ids(1, 1 << 30); });
  EXPECT_EQ(error.field, "prompt[1]");
  error = info([](auto& r) { r = Ids(FakeWorker::kContext); });
  EXPECT_EQ(error.reason, ErrorReason::kPromptTooLong);
  error = info([](auto& r) { r.set_model("other"); });
  EXPECT_EQ(error.reason, ErrorReason::kModelNotFound);
  error = info([](auto& r) { r.set_text(""); });
  EXPECT_EQ(error.reason, ErrorReason::kPromptEmpty);
}

// The limit is the clients': what a worker has cached may be more.
TEST_F(RouterServerTest, LimitsTheRequestsOfClientsOnly) {
  options_.max_message_bytes = 4096;
  Start();
  FakeWorker worker(clock_, "decode-0", AnswerTwo);
  worker.info().content = content_;
  worker.info().total_blocks = 1024;
  std::vector<BlockHash> chain;
  for (uint64_t i = 1; i <= 1024; ++i) chain.push_back(BlockHash(~i));
  worker.cached() = {1, {{BlockHash(), chain}}};
  ASSERT_GT(EncodeWorkerMessage(worker.cached()).size(), 4096u);
  worker.Register(router_->address());
  EXPECT_TRUE(Eventually([&] { return Info().decode_workers() == 1; }));

  EXPECT_TRUE(Generate(Ids(3)).status.ok());
  v1::GenerateRequest request;
  request.set_text(std::string(5000, 'a'));
  const absl::Status refused = Generate(request).status;
  EXPECT_EQ(ErrorInfoOf(refused).reason, ErrorReason::kInvalidField);
  EXPECT_THAT(std::string(refused.message()),
              testing::HasSubstr("limits.max_message_bytes"));
  v1::TokenizeRequest tokenize;
  tokenize.set_text(request.text());
  grpc::ClientContext context;
  v1::TokenizeResponse tokens;
  EXPECT_EQ(stub_->Tokenize(&context, tokenize, &tokens).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RouterServerTest, RefusesAWorkerOfAnotherModel) {
  Start();
  FakeWorker stranger(clock_, "decode-0", AnswerTwo);
  stranger.info().content = ContentId(content_.value() + 1);
  stranger.Register(router_->address());
  const absl::Status status = stranger.WaitRegistrationEnded();
  EXPECT_EQ(ErrorInfoOf(status).reason, ErrorReason::kIncompatibleWorker)
      << status;
  EXPECT_EQ(Info().decode_workers(), 0u);
}

TEST_F(RouterServerTest, AClientThatLeavesCancelsItsLeg) {
  Start();
  auto hanging = std::make_shared<Hanging>();
  auto worker = AddWorker(Hang(hanging));
  grpc::ClientContext context;
  auto reader = stub_->Generate(&context, Ids(3));
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  context.TryCancel();
  auto ended = hanging->ended.get_future();
  ASSERT_EQ(ended.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(absl::IsCancelled(ended.get()));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(RouterServerTest, AbortEndsTheNamedCall) {
  Start();
  auto hanging = std::make_shared<Hanging>();
  auto worker = AddWorker(Hang(hanging));
  v1::GenerateRequest request = Ids(3);
  request.set_request_id("long");
  grpc::ClientContext context;
  auto reader = stub_->Generate(&context, request);
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  v1::AbortRequest abort;
  v1::AbortResponse aborted;
  for (const auto& [id, count] :
       {std::pair<const char*, uint32_t>("other", 0), {"long", 1}}) {
    grpc::ClientContext call;
    abort.set_request_id(id);
    ASSERT_TRUE(stub_->Abort(&call, abort, &aborted).ok());
    EXPECT_EQ(aborted.aborted(), count) << id;
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(RouterServerTest, AWorkerIsLostWithItsStream) {
  options_.worker_patience = absl::Milliseconds(50);
  Start();
  auto worker = AddWorker(AnswerTwo);
  worker->Leave();
  EXPECT_TRUE(Eventually([&] { return Info().decode_workers() == 0; }));
  EXPECT_EQ(ErrorInfoOf(Generate(Ids(3)).status).reason,
            ErrorReason::kNoWorkers);
}

TEST_F(RouterServerTest, RefusesMoreCallsThanItMayHold) {
  options_.max_concurrent_requests = 1;
  options_.max_queued_requests = 1;
  Start();
  auto hanging = std::make_shared<Hanging>();
  auto worker = AddWorker(Hang(hanging));
  grpc::ClientContext running, waiting;
  auto first = stub_->Generate(&running, Ids(3));
  v1::GenerateResponse response;
  ASSERT_TRUE(first->Read(&response));
  auto second = stub_->Generate(&waiting, Ids(3));
  // Calls arrive in any order: one of the next two is the one too many.
  const Outcome third = [&] {
    Outcome outcome;
    EXPECT_TRUE(Eventually([&] {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() +
                           std::chrono::milliseconds(200));
      auto reader = stub_->Generate(&context, Ids(3));
      outcome.status = FromGrpc(reader->Finish());
      return absl::IsResourceExhausted(outcome.status);
    }));
    return outcome;
  }();
  const ErrorInfo info = ErrorInfoOf(third.status);
  EXPECT_EQ(info.reason, ErrorReason::kQueueFull);
  EXPECT_TRUE(info.retryable);
  EXPECT_GT(info.retry_after, absl::ZeroDuration());
  running.TryCancel();
  waiting.TryCancel();
  first->Finish();
  second->Finish();
}

TEST_F(RouterServerTest, StopLetsRunningCallsEnd) {
  Start();
  auto hanging = std::make_shared<Hanging>();
  LegRequest seen;
  // Calls after the first, made before the drain begins, are short.
  auto worker = AddWorker([&](LegRequest leg, std::shared_ptr<Stream> stream) {
    if (hanging->legs > 0) return AnswerTwo(std::move(leg), std::move(stream));
    seen = leg;
    return Hang(hanging)(std::move(leg), std::move(stream));
  });
  grpc::ClientContext context;
  auto reader = stub_->Generate(&context, Ids(3));
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  auto stopped = std::async(std::launch::async, [&] {
    return router_->Stop(absl::FromChrono(kPatience), Wait);
  });
  EXPECT_TRUE(Eventually([&] {
    return ErrorInfoOf(Generate(Ids(3)).status).reason ==
           ErrorReason::kDraining;
  }));
  auto stream = hanging->started.get_future().get();
  stream->Send(EncodeLegEvent(FrameOf(seen, 1, FinishReason::kLength)));
  stream->Close(absl::OkStatus());
  EXPECT_TRUE(reader->Read(&response));
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(stopped.get());
}

TEST_F(RouterServerTest, StopWithoutPatienceCutsCallsOff) {
  Start();
  auto hanging = std::make_shared<Hanging>();
  auto worker = AddWorker(Hang(hanging));
  grpc::ClientContext context;
  auto reader = stub_->Generate(&context, Ids(3));
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_FALSE(router_->Stop(absl::FromChrono(kPatience), StopNow));
  EXPECT_FALSE(reader->Finish().ok());
}

TEST_F(RouterServerTest, SaysWhyItCannotStart) {
  Start();
  options_.listen.grpc = router_->address();
  auto second = RouterServer::Start(options_, clock_, &probe_);
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  options_.model = "nowhere.gguf";
  second = RouterServer::Start(options_, clock_, &probe_);
  EXPECT_TRUE(absl::IsNotFound(second.status())) << second.status();
}

}  // namespace
}  // namespace penstock
