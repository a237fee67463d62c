#include "common/telemetry/prometheus/metrics_server.h"
#include "common/telemetry/prometheus/router_metrics.h"
#include "common/telemetry/prometheus/worker_metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

TEST(MetricsTest, WorkerVerbsBecomeSeries) {
  auto server = MetricsServer::Create("", "decode", "1.2.3");
  ASSERT_TRUE(server.ok());
  WorkerMetrics metrics({"m", "decode"}, (*server)->registry());
  metrics.Loaded(10);
  EngineProbe& engine = metrics;
  HandoffProbe& handoff = metrics;
  engine.TokenMade();
  engine.TokenMade();
  engine.PrefixLooked(100, 32);
  handoff.TransferEnded(HandoffProbe::Direction::kIn, "shm", "ok", 4096,
                        absl::Milliseconds(3));
  handoff.TransferEnded(HandoffProbe::Direction::kIn, "shm", "WORKER_LOST", 0,
                        absl::Milliseconds(3));
  BlockCounts blocks;
  blocks.active = 4;
  blocks.free = 6;
  metrics.Observe({}, blocks);
  std::string page = (*server)->Render();
  const std::string labels = R"({engine="0",model_name="m",role="decode"})";
  EXPECT_THAT(page, HasSubstr("vllm:generation_tokens_total" + labels + " 2"));
  EXPECT_THAT(page, HasSubstr("vllm:prefix_cache_hits_total" + labels + " 32"));
  EXPECT_THAT(page, HasSubstr("num_gpu_blocks=\"10\""));
  EXPECT_THAT(page, HasSubstr("vllm:kv_cache_usage_perc" + labels + " 0.4"));
  EXPECT_THAT(page, HasSubstr(R"(state="free"} 6)"));
  EXPECT_THAT(page, HasSubstr(R"(role="decode",transport="shm"} 4096)"));
  EXPECT_THAT(page, HasSubstr(R"(reason="WORKER_LOST")"));
  EXPECT_THAT(page, HasSubstr(R"(penstock_build_info{role="decode",)"));
}

TEST(MetricsTest, RouterVerbsBecomeSeries) {
  auto server = MetricsServer::Create("127.0.0.1:0", "router", "1.2.3");
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT((*server)->address(), testing::StartsWith("127.0.0.1:"));
  RouterMetrics metrics("m", (*server)->registry());
  RouterProbe& probe = metrics;
  probe.RequestStarted(RequestId(1), 50);
  RequestOutcome outcome;
  outcome.finish = FinishReason::kLength;
  outcome.delivered_tokens = 7;
  probe.RequestFinished(outcome);
  probe.RequestRejected(ErrorReason::kQueueFull);
  probe.RequestBegan(RequestId(1), absl::Seconds(2));
  probe.WorkerVetoed(LegKind::kPrefill, {"w", Incarnation(1)}, true);
  std::string page = (*server)->Render();
  EXPECT_THAT(page, HasSubstr("vllm:generation_tokens_total{engine=\"0\","
                              "model_name=\"m\",role=\"router\"} 7"));
  EXPECT_THAT(page, HasSubstr(R"(finished_reason="length")"));
  EXPECT_THAT(page, HasSubstr(R"(reason="QUEUE_FULL")"));
  EXPECT_THAT(page, HasSubstr("penstock_router_queue_seconds_sum{engine="
                              "\"0\",model_name=\"m\",role=\"router\"} 2"));
  EXPECT_THAT(page, HasSubstr("penstock_worker_vetoed{engine=\"0\",leg="
                              "\"prefill\",model_name=\"m\",role=\"router\","
                              "worker=\"w\"} 1"));
}

TEST(MetricsTest, ATakenPortIsAClearError) {
  auto first = MetricsServer::Create("127.0.0.1:0", "router", "1");
  ASSERT_TRUE(first.ok());
  auto second = MetricsServer::Create((*first)->address(), "router", "1");
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("--metrics-listen"));
}

}  // namespace
}  // namespace penstock
