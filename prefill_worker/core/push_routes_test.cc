#include "prefill_worker/core/push_routes.h"

#include <optional>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;

// Records what it is connected to; moves nothing.
class FakeTransport : public KvTransport {
 public:
  explicit FakeTransport(TransportKind kind, absl::Status answer = {})
      : caps_{kind, true, 0}, answer_(std::move(answer)) {}

  const TransportCaps& caps() const override { return caps_; }
  TransportAddress Describe() const override { return {}; }
  absl::Status Connect(const WorkerKey& peer,
                       const TransportAddress& address) override {
    connected.push_back(address.address);
    return answer_;
  }
  void PrepareReceive(TransferId, const std::vector<BlockRef>&) override {}
  bool Revoke(TransferId) override { return true; }
  PostId Post(const WorkerKey&, TransferId, std::vector<PageWrite>,
              Instant) override {
    return 0;
  }
  void Cancel(PostId) override {}
  void DropPeer(const WorkerKey&) override {}
  std::optional<PostCompletion> PollCompletion() override { return {}; }
  std::optional<PageArrival> PollArrival() override { return {}; }

  std::vector<std::string> connected;

 private:
  const TransportCaps caps_;
  const absl::Status answer_;
};

const WorkerKey kPeer{"d", Incarnation(7)};

TransportAddress At(TransportKind kind, std::string address) {
  return {kind, std::move(address), kPeer.incarnation, 0};
}

TEST(PushRoutesTest, APostHasLongerTheMoreItBrings) {
  HandoffOptions options;
  options.post_timeout = absl::Seconds(5);
  options.min_bandwidth = 1000;
  EXPECT_EQ(TimeToPost(options, 0), absl::Seconds(5));
  EXPECT_EQ(TimeToPost(options, 2500), absl::Milliseconds(7500));
  options.min_bandwidth = 1 << 20;
  EXPECT_EQ(TimeToPost(options, uint64_t{1} << 40),
            absl::Seconds(5 + (1 << 20)));
}

TEST(PushRoutesTest, UsesWhatBothHaveInThePeersOrder) {
  FakeTransport tcp(TransportKind::kTcp), inproc(TransportKind::kInproc);
  PushRoutes routes;
  ASSERT_TRUE(routes
                  .Connect({&inproc, &tcp}, kPeer,
                           {At(TransportKind::kShm, "no such one here"),
                            At(TransportKind::kTcp, "a"),
                            At(TransportKind::kTcp, "named twice"),
                            At(TransportKind::kInproc, "b")})
                  .ok());
  EXPECT_EQ(&routes.best(), &tcp);
  EXPECT_THAT(tcp.connected, ElementsAre("a"));
  EXPECT_THAT(inproc.connected, ElementsAre("b"));
}

TEST(PushRoutesTest, WhatRefusesIsNoRoute) {
  FakeTransport shm(TransportKind::kShm,
                    absl::FailedPreconditionError("was dropped"));
  FakeTransport tcp(TransportKind::kTcp);
  PushRoutes both;
  ASSERT_TRUE(
      both.Connect({&shm, &tcp}, kPeer,
                   {At(TransportKind::kShm, "a"), At(TransportKind::kTcp, "b")})
          .ok());
  EXPECT_EQ(&both.best(), &tcp);

  PushRoutes none;
  EXPECT_EQ(none.Connect({&shm}, kPeer, {At(TransportKind::kShm, "a")}),
            absl::FailedPreconditionError("was dropped"));
  EXPECT_EQ(
      PushRoutes().Connect({&tcp}, kPeer, {At(TransportKind::kShm, "")}).code(),
      absl::StatusCode::kFailedPrecondition);
}

TEST(PushRoutesTest, WhatFailedComesAfterAllOthers) {
  FakeTransport a(TransportKind::kInproc), b(TransportKind::kShm),
      c(TransportKind::kTcp);
  PushRoutes routes;
  ASSERT_TRUE(
      routes
          .Connect({&a, &b, &c}, kPeer,
                   {At(TransportKind::kInproc, ""), At(TransportKind::kShm, ""),
                    At(TransportKind::kTcp, "")})
          .ok());
  routes.Failed(&a);
  EXPECT_EQ(&routes.best(), &b);
  // A second post that was under way over it fails too: nothing new.
  routes.Failed(&a);
  EXPECT_EQ(&routes.best(), &b);
  routes.Failed(&b);
  EXPECT_EQ(&routes.best(), &c);
  routes.Failed(&c);
  EXPECT_EQ(&routes.best(), &a);
}

TEST(PushRoutesTest, NamesTheOneThatCarriedMost) {
  FakeTransport a(TransportKind::kShm), b(TransportKind::kTcp);
  PushRoutes routes;
  ASSERT_TRUE(
      routes
          .Connect({&a, &b}, kPeer,
                   {At(TransportKind::kShm, ""), At(TransportKind::kTcp, "")})
          .ok());
  EXPECT_EQ(&routes.busiest(), &a);
  routes.Carried(&a, 100);
  routes.Failed(&a);
  EXPECT_EQ(&routes.busiest(), &a);
  routes.Carried(&b, 60);
  routes.Carried(&b, 60);
  EXPECT_EQ(&routes.busiest(), &b);
}

}  // namespace
}  // namespace penstock
