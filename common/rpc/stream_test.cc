#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/env/real/monotonic_clock.h"
#include "common/peer/error_reason.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/server.h"
#include "common/rpc/stream.h"
#include "common/rpc/stream_recorder.h"
#include "common/runtime/loop_thread.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "gtest/gtest.h"
#include "protos/errors.pb.h"
#include "protos/inference.grpc.pb.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::chrono::seconds kPatience(30);

constexpr char kGenerateMethod[] = "/penstock.v1.Inference/Generate";

// A server on loopback whose Generate and Pair are given by the test,
// and a channel to it. Both ends live on one loop.
class StreamTest : public testing::Test {
 protected:
  StreamTest() : loop_(clock_, {.name = "test"}) { loop_.Start(nullptr); }
  ~StreamTest() override {
    if (server_ != nullptr) server_->Shutdown(absl::ZeroDuration());
    loop_.Stop();
  }

  void Serve(StreamMethod generate, StreamMethod pair = nullptr) {
    std::vector<std::unique_ptr<RpcService>> services;
    services.push_back(MakeInferenceService(
        {std::move(generate), nullptr, nullptr, nullptr, nullptr},
        loop_.inbox(), loop_.inbox()));
    services.push_back(MakeHandoffService(std::move(pair), loop_.inbox()));
    auto server =
        RpcServer::Start({.address = "127.0.0.1:0"}, std::move(services));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = RpcChannel::Open(server_->address());
  }

  std::shared_ptr<Stream> Call(const std::string& method,
                               std::shared_ptr<Heard> heard) {
    return channel_->Start(method, std::make_unique<StreamRecorder>(heard),
                           loop_.inbox());
  }

  MonotonicClock clock_;
  LoopThread loop_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<RpcChannel> channel_;
};

TEST_F(StreamTest, ServerStreamGivesMessagesInOrderThenItsStatus) {
  auto at_server = std::make_shared<Heard>();
  Serve([&](const CallInfo&, std::string request,
            std::shared_ptr<Stream> stream) {
    for (int i = 0; i < 500; ++i) {
      stream->Send(absl::StrCat(request, i));
    }
    stream->Close(MakeError(ErrorReason::kQueueFull, "later", "f",
                            absl::Milliseconds(1500)));
    return std::make_unique<StreamRecorder>(at_server);
  });
  auto heard = std::make_shared<Heard>();
  auto stream = Call(kGenerateMethod, heard);
  stream->Send("m");
  stream->Close(absl::OkStatus());
  const absl::Status status = heard->WaitClosed();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "later");
  const ErrorInfo info = ErrorInfoOf(status);
  EXPECT_EQ(info.reason, ErrorReason::kQueueFull);
  EXPECT_EQ(info.field, "f");
  EXPECT_EQ(info.retry_after, absl::Milliseconds(1500));
  ASSERT_EQ(heard->messages.size(), 500u);
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(heard->messages[i], absl::StrCat("m", i));
  }
  EXPECT_TRUE(at_server->WaitClosed().ok());
}

// Echoes each message until the client finishes its side.
class Echo : public StreamHandler {
 public:
  Echo(std::shared_ptr<Stream> stream, std::shared_ptr<Heard> heard)
      : stream_(std::move(stream)), heard_(std::move(heard)) {}
  void OnMessage(std::string message) override {
    stream_->Send(absl::StrCat("echo ", message));
  }
  void OnClosed(const absl::Status& status) override {
    heard_->closed.set_value(status);
  }

 private:
  const std::shared_ptr<Stream> stream_;
  const std::shared_ptr<Heard> heard_;
};

TEST_F(StreamTest, BidirectionalStreamEndsWhenTheClientHasFinished) {
  auto at_server = std::make_shared<Heard>();
  Serve(nullptr,
        [&](const CallInfo&, std::string, std::shared_ptr<Stream> stream) {
          return std::make_unique<Echo>(std::move(stream), at_server);
        });
  auto heard = std::make_shared<Heard>();
  auto stream = Call(kPairMethod, heard);
  stream->Send("a");
  stream->Send("b");
  stream->Send("");
  stream->Close(absl::OkStatus());
  EXPECT_TRUE(heard->WaitClosed().ok());
  EXPECT_THAT(heard->messages, ElementsAre("echo a", "echo b", "echo "));
  EXPECT_TRUE(at_server->WaitClosed().ok());
}

TEST_F(StreamTest, CancelOfTheClientReachesTheServer) {
  auto at_server = std::make_shared<Heard>();
  std::promise<void> accepted;
  Serve([&](const CallInfo&, std::string, std::shared_ptr<Stream> stream) {
    stream->Send("first");
    accepted.set_value();
    return std::make_unique<StreamRecorder>(at_server);
  });
  auto heard = std::make_shared<Heard>();
  auto stream = Call(kGenerateMethod, heard);
  stream->Send("m");
  stream->Close(absl::OkStatus());
  accepted.get_future().wait_for(kPatience);
  stream->Close(absl::CancelledError("enough"));
  EXPECT_TRUE(absl::IsCancelled(at_server->WaitClosed()));
  EXPECT_TRUE(absl::IsCancelled(heard->WaitClosed()));
}

TEST_F(StreamTest, AServerThatIsNotThereIsUnavailable) {
  auto channel = RpcChannel::Open("127.0.0.1:1");
  auto heard = std::make_shared<Heard>();
  channel->Start(kPairMethod, std::make_unique<StreamRecorder>(heard),
                 loop_.inbox());
  EXPECT_TRUE(absl::IsUnavailable(heard->WaitClosed()));
}

TEST_F(StreamTest, ShutdownEndsRunningCalls) {
  auto at_server = std::make_shared<Heard>();
  std::promise<void> accepted;
  Serve([&](const CallInfo&, std::string, std::shared_ptr<Stream> stream) {
    accepted.set_value();
    return std::make_unique<StreamRecorder>(at_server);
  });
  auto heard = std::make_shared<Heard>();
  auto stream = Call(kGenerateMethod, heard);
  stream->Send("m");
  accepted.get_future().wait_for(kPatience);
  server_->Shutdown(absl::ZeroDuration());
  EXPECT_FALSE(heard->WaitClosed().ok());
  EXPECT_TRUE(absl::IsCancelled(at_server->WaitClosed()));
}

TEST_F(StreamTest, AReaderThatIsTooSlowFailsItsStreamAlone) {
  auto at_server = std::make_shared<Heard>();
  Serve([&](const CallInfo&, std::string, std::shared_ptr<Stream> stream) {
    // Far beyond what flow control and the queue take while the one loop,
    // which also reads, is busy here.
    const std::string big(1 << 20, 'x');
    for (int i = 0; i < 64; ++i) stream->Send(big);
    return std::make_unique<StreamRecorder>(at_server);
  });
  auto heard = std::make_shared<Heard>();
  auto stream = Call(kGenerateMethod, heard);
  stream->Send("m");
  stream->Close(absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(at_server->WaitClosed()));
  EXPECT_TRUE(absl::IsResourceExhausted(heard->WaitClosed()));
}

TEST_F(StreamTest, TwoServersDoNotShareAPort) {
  Serve(nullptr);
  auto second = RpcServer::Start({.address = server_->address()}, {});
  ASSERT_FALSE(second.ok());
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(server_->address()));
}

TEST(GrpcStatusTest, EveryReasonTravelsUnderItsOwnName) {
  for (int i = 0; i < v1::ErrorReason_ARRAYSIZE; ++i) {
    const auto reason = static_cast<ErrorReason>(i);
    EXPECT_EQ(v1::ErrorReason_Name(i),
              absl::StrCat("ERROR_REASON_", ReasonName(reason)));
    const absl::Status sent =
        MakeError(reason, "why", "field", absl::Milliseconds(7));
    const absl::Status got = FromGrpc(ToGrpc(sent));
    EXPECT_EQ(got.code(), sent.code());
    EXPECT_EQ(got.message(), "why");
    EXPECT_EQ(ErrorInfoOf(got).reason, reason);
    EXPECT_EQ(ErrorInfoOf(got).field, "field");
    EXPECT_EQ(ErrorInfoOf(got).retry_after, absl::Milliseconds(7));
  }
}

TEST(GrpcStatusTest, WhatAWorkerKeptTravels) {
  const absl::Status sent =
      WithKeptTokens(MakeError(ErrorReason::kDraining, "why"), 4711);
  const absl::Status got = FromGrpc(ToGrpc(sent));
  EXPECT_EQ(ErrorInfoOf(got).kept_tokens, 4711);
  EXPECT_EQ(ErrorInfoOf(got).reason, ErrorReason::kDraining);
  const absl::Status plain =
      FromGrpc(ToGrpc(MakeError(ErrorReason::kDraining, "why")));
  EXPECT_EQ(ErrorInfoOf(plain).kept_tokens, 0);
  // Nobody has so many.
  const absl::Status absurd =
      WithKeptTokens(MakeError(ErrorReason::kDraining, "why"), 1 << 30);
  EXPECT_EQ(ErrorInfoOf(FromGrpc(ToGrpc(absurd))).kept_tokens, 0);
}

TEST(GrpcStatusTest, DetailsThatAreNotOursAreDropped) {
  const grpc::Status nonsense(grpc::StatusCode::ABORTED, "m", "\xff\xff");
  EXPECT_EQ(FromGrpc(nonsense), absl::AbortedError("m"));
  // A detail that contradicts the code.
  const grpc::Status queue_full =
      ToGrpc(MakeError(ErrorReason::kQueueFull, ""));
  const grpc::Status lie(grpc::StatusCode::NOT_FOUND, "m",
                         queue_full.error_details());
  EXPECT_EQ(ErrorInfoOf(FromGrpc(lie)).reason, ErrorReason::kModelNotFound);
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
}

// A client as others write it: typed stubs, synchronous calls.
class TypedClientTest : public StreamTest {
 protected:
  void ServeInference(InferenceMethods methods) {
    std::vector<std::unique_ptr<RpcService>> services;
    services.push_back(
        MakeInferenceService(std::move(methods), loop_.inbox(), loop_.inbox()));
    auto server =
        RpcServer::Start({.address = "127.0.0.1:0"}, std::move(services));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::Inference::NewStub(grpc::CreateChannel(
        server_->address(), grpc::InsecureChannelCredentials()));
  }

  std::unique_ptr<v1::Inference::Stub> stub_;
};

TEST_F(TypedClientTest, UnaryAnswersAndErrorsArrive) {
  InferenceMethods methods;
  methods.tokenize = [](const CallInfo& call, std::string request,
                        UnaryReply reply) {
    v1::TokenizeRequest parsed;
    parsed.ParseFromString(request);
    if (parsed.text().empty()) {
      reply(MakeError(ErrorReason::kQueueFull, "no", "", absl::Seconds(2)));
      return;
    }
    v1::TokenizeResponse response;
    response.add_ids(static_cast<int>(parsed.text().size()));
    reply(response.SerializeAsString());
  };
  // Never answers: the reply is dropped.
  methods.abort = [](const CallInfo&, std::string, UnaryReply) {};
  ServeInference(std::move(methods));

  v1::TokenizeRequest request;
  request.set_text("four");
  v1::TokenizeResponse response;
  grpc::ClientContext first;
  ASSERT_TRUE(stub_->Tokenize(&first, request, &response).ok());
  EXPECT_THAT(response.ids(), ElementsAre(4));

  request.set_text("");
  grpc::ClientContext second;
  const grpc::Status refused = stub_->Tokenize(&second, request, &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ErrorInfoOf(FromGrpc(refused)).retry_after, absl::Seconds(2));
  const auto& trailers = second.GetServerTrailingMetadata();
  const auto pushback = trailers.find("grpc-retry-pushback-ms");
  ASSERT_NE(pushback, trailers.end());
  EXPECT_EQ(pushback->second, "2000");

  grpc::ClientContext third;
  v1::AbortResponse aborted;
  EXPECT_EQ(stub_->Abort(&third, {}, &aborted).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TypedClientTest, HeadersAreHeldUntilTheyAreSent) {
  InferenceMethods methods;
  CallInfo seen;
  methods.generate =
      [&seen](
          const CallInfo& call, std::string,
          std::shared_ptr<Stream> stream) -> std::unique_ptr<StreamHandler> {
    seen = call;
    if (call.request_id == "refused") {
      stream->Close(MakeError(ErrorReason::kNoWorkers, "none"));
      return nullptr;
    }
    stream->SendHeaders({{"x-request-id", "drawn"}});
    stream->Close(absl::OkStatus());
    return nullptr;
  };
  ServeInference(std::move(methods));

  grpc::ClientContext admitted;
  admitted.set_deadline(std::chrono::system_clock::now() + kPatience);
  admitted.AddMetadata("traceparent", "00-1-2-3");
  auto reader = stub_->Generate(&admitted, {});
  reader->WaitForInitialMetadata();
  EXPECT_TRUE(reader->Finish().ok());
  const auto& headers = admitted.GetServerInitialMetadata();
  const auto id = headers.find("x-request-id");
  ASSERT_NE(id, headers.end());
  EXPECT_EQ(id->second, "drawn");
  EXPECT_EQ(seen.traceparent, "00-1-2-3");
  // gRPC rounds deadlines up a little.
  EXPECT_LE(seen.timeout, absl::FromChrono(kPatience) + absl::Seconds(1));
  EXPECT_GT(seen.timeout, absl::ZeroDuration());

  grpc::ClientContext refused;
  refused.AddMetadata("x-request-id", "refused");
  reader = stub_->Generate(&refused, {});
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  // Nothing but trailers: the call was never committed.
  EXPECT_EQ(refused.GetServerInitialMetadata().count("x-request-id"), 0u);
  EXPECT_EQ(seen.timeout, absl::InfiniteDuration());
}

}  // namespace
}  // namespace penstock
