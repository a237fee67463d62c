#include "common/rpc/leg_link.h"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/env/real/monotonic_clock.h"
#include "common/peer/error_reason.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "common/rpc/stream_recorder.h"
#include "common/runtime/loop_thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/worker.pb.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::chrono::seconds kPatience(20);

// A worker on loopback whose legs are the test's, and a link to it. The two
// ends have loops of their own.
class LegLinkTest : public testing::Test {
 protected:
  // A leg as the worker sees it.
  struct Leg {
    LegKind kind;
    std::string request;
    std::shared_ptr<Stream> stream;
    std::shared_ptr<Heard> heard;
  };
  using Begin = std::function<void(const Leg&)>;

  LegLinkTest()
      : router_(clock_, {.name = "router"}),
        worker_(clock_, {.name = "worker"}) {
    router_.Start(nullptr);
    worker_.Start(nullptr);
  }
  ~LegLinkTest() override {
    router_.RunAndWait([this] { link_.reset(); });
    if (server_ != nullptr) server_->Shutdown(absl::ZeroDuration());
    worker_.Stop();
    router_.Stop();
  }

  void Serve(Begin begin) {
    auto method = [begin](LegKind kind) {
      return [begin, kind](const CallInfo&, std::string request,
                           std::shared_ptr<Stream> stream) {
        Leg leg{kind, std::move(request), std::move(stream),
                std::make_shared<Heard>()};
        begin(leg);
        return std::make_unique<StreamRecorder>(leg.heard);
      };
    };
    std::vector<std::unique_ptr<RpcService>> services;
    services.push_back(
        MakeWorkerService({method(LegKind::kPrefill), method(LegKind::kDecode)},
                          worker_.inbox()));
    auto server =
        RpcServer::Start({.address = "127.0.0.1:0"}, std::move(services));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    link_ = LegLink::Open(server_->address(), router_.inbox());
  }

  std::shared_ptr<Stream> Start(LegKind kind, const std::string& request,
                                std::shared_ptr<Heard> heard) {
    std::shared_ptr<Stream> stream;
    router_.RunAndWait([&] {
      stream =
          link_->Start(kind, request, std::make_unique<StreamRecorder>(heard));
    });
    return stream;
  }
  void Close(const std::shared_ptr<Stream>& stream,
             const absl::Status& status) {
    router_.RunAndWait([&] { stream->Close(status); });
  }

  MonotonicClock clock_;
  LoopThread router_, worker_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<LegLink> link_;
};

TEST_F(LegLinkTest, EachLegGetsItsOwnEventsInOrderAndItsStatus) {
  Serve([](const Leg& leg) {
    const char* kind = leg.kind == LegKind::kPrefill ? "prefill" : "decode";
    for (int i = 0; i < 3; ++i) {
      leg.stream->Send(absl::StrCat(kind, " ", leg.request, " ", i));
    }
    leg.stream->Close(
        leg.kind == LegKind::kPrefill
            ? absl::OkStatus()
            : WithKeptTokens(MakeError(ErrorReason::kQueueFull, "later", "",
                                       absl::Milliseconds(1500)),
                             48));
    leg.stream->Send("too late");
  });
  auto first = std::make_shared<Heard>(), second = std::make_shared<Heard>();
  Start(LegKind::kPrefill, "a", first);
  Start(LegKind::kDecode, "b", second);
  EXPECT_TRUE(first->WaitClosed().ok());
  const absl::Status status = second->WaitClosed();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "later");
  const ErrorInfo info = ErrorInfoOf(status);
  EXPECT_EQ(info.reason, ErrorReason::kQueueFull);
  EXPECT_EQ(info.retry_after, absl::Milliseconds(1500));
  EXPECT_EQ(info.kept_tokens, 48);
  EXPECT_THAT(first->messages,
              ElementsAre("prefill a 0", "prefill a 1", "prefill a 2"));
  EXPECT_THAT(second->messages,
              ElementsAre("decode b 0", "decode b 1", "decode b 2"));
}

TEST_F(LegLinkTest, TheWorkersEndHearsThatItIsOver) {
  std::promise<std::shared_ptr<Heard>> begun;
  Serve([&](const Leg& leg) {
    leg.stream->Close(absl::OkStatus());
    begun.set_value(leg.heard);
  });
  auto heard = std::make_shared<Heard>();
  Start(LegKind::kDecode, "a", heard);
  EXPECT_TRUE(begun.get_future().get()->WaitClosed().ok());
  EXPECT_TRUE(heard->WaitClosed().ok());
}

TEST_F(LegLinkTest, ACancelledLegEndsAtOnceAndTheOthersGoOn) {
  std::vector<Leg> legs;  // the worker loop's
  std::promise<void> both;
  Serve([&](const Leg& leg) {
    legs.push_back(leg);
    if (legs.size() == 2) both.set_value();
  });
  auto first = std::make_shared<Heard>(), second = std::make_shared<Heard>();
  auto stream = Start(LegKind::kDecode, "a", first);
  Start(LegKind::kDecode, "b", second);
  ASSERT_EQ(both.get_future().wait_for(kPatience), std::future_status::ready);
  Close(stream, absl::CancelledError("enough"));
  EXPECT_TRUE(absl::IsCancelled(first->WaitClosed()));
  EXPECT_TRUE(absl::IsCancelled(legs[0].heard->WaitClosed()));
  // What it still says reaches nobody.
  legs[0].stream->Send("nobody");
  legs[0].stream->Close(absl::OkStatus());
  legs[1].stream->Send("somebody");
  legs[1].stream->Close(absl::OkStatus());
  EXPECT_TRUE(second->WaitClosed().ok());
  EXPECT_THAT(first->messages, IsEmpty());
  EXPECT_THAT(second->messages, ElementsAre("somebody"));
}

TEST_F(LegLinkTest, ALostWorkerEndsEveryLegAndTheNextOneConnectsAnew) {
  std::promise<void> begun;
  Serve([&](const Leg& leg) {
    if (leg.request == "b") begun.set_value();
  });
  auto first = std::make_shared<Heard>(), second = std::make_shared<Heard>();
  Start(LegKind::kDecode, "a", first);
  Start(LegKind::kDecode, "b", second);
  ASSERT_EQ(begun.get_future().wait_for(kPatience), std::future_status::ready);
  const std::string address = server_->address();
  server_->Shutdown(absl::ZeroDuration());
  server_.reset();
  EXPECT_TRUE(absl::IsUnavailable(first->WaitClosed()));
  EXPECT_TRUE(absl::IsUnavailable(second->WaitClosed()));
  std::vector<std::unique_ptr<RpcService>> services;
  services.push_back(MakeWorkerService(
      {nullptr,
       [](const CallInfo&, std::string, std::shared_ptr<Stream> stream) {
         stream->Close(absl::OkStatus());
         return std::unique_ptr<StreamHandler>();
       }},
      worker_.inbox()));
  auto again = RpcServer::Start({.address = address}, std::move(services));
  ASSERT_TRUE(again.ok()) << again.status();
  server_ = *std::move(again);
  // gRPC may still wait before it tries the address again.
  absl::Status status = absl::UnavailableError("");
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (absl::IsUnavailable(status) &&
         std::chrono::steady_clock::now() < give_up) {
    auto third = std::make_shared<Heard>();
    Start(LegKind::kDecode, "c", third);
    status = third->WaitClosed();
  }
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(LegLinkTest, AnOpenLegOutlivesItsLink) {
  std::promise<Leg> begun;
  Serve([&](const Leg& leg) { begun.set_value(leg); });
  auto heard = std::make_shared<Heard>();
  Start(LegKind::kDecode, "a", heard);
  Leg leg = begun.get_future().get();
  router_.RunAndWait([this] { link_.reset(); });
  leg.stream->Send("still here");
  leg.stream->Close(absl::OkStatus());
  EXPECT_TRUE(heard->WaitClosed().ok());
  EXPECT_THAT(heard->messages, ElementsAre("still here"));
}

// A router that is not ours gets an error and nothing is begun.
TEST_F(LegLinkTest, AWrongCommandEndsTheStream) {
  int begun = 0;
  Serve([&](const Leg&) { ++begun; });
  v1::LegCommands again;
  for (int i = 0; i < 2; ++i) {
    v1::LegCommand* command = again.add_commands();
    command->set_leg(1);
    command->set_decode("x");
  }
  v1::LegCommands nothing;
  nothing.add_commands()->set_leg(7);
  auto channel = RpcChannel::Open(server_->address());
  const std::pair<std::string, const char*> cases[] = {
      {again.SerializeAsString(), "leg"},
      {nothing.SerializeAsString(), "command"},
      {"\xff", ""}};
  for (const auto& [message, why] : cases) {
    auto heard = std::make_shared<Heard>();
    auto stream = channel->Start(
        kLegsMethod, std::make_unique<StreamRecorder>(heard), router_.inbox());
    stream->Send(message);
    const absl::Status status = heard->WaitClosed();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
  worker_.RunAndWait([&] { EXPECT_EQ(begun, 1); });
}

}  // namespace
}  // namespace penstock
