#include "common/rpc/leg_wire.h"

#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/peer/error_reason.h"
#include "common/rpc/wire_check.h"
#include "common/rpc/wire_expectations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/worker.pb.h"

namespace penstock {
namespace {

using testing::ElementsAre;

std::vector<SamplerStage> AllStagesBackwards() {
  std::vector<SamplerStage> stages;
  for (int i = kSamplerStageCount - 1; i >= 0; --i) {
    stages.push_back(static_cast<SamplerStage>(i));
  }
  return stages;
}

LegRequest ExampleLeg() {
  LegRequest leg;
  GenerateRequest& request = leg.request;
  request.id = RequestId(kBig);
  request.client_request_id = "client-7";
  request.model = "tiny";
  request.prompt = {0, 5, 49151};
  request.sampling.temperature = 0.0f;
  request.sampling.top_k = 40;
  request.sampling.top_p = 0.9f;
  request.sampling.seed = kBig;
  request.sampling.logprobs = 0;
  request.sampling.min_p = 0.05f;
  request.sampling.typical_p = 0.95f;
  request.sampling.top_n_sigma = 1.5f;
  request.sampling.penalties = {1.1f, -0.5f, 0.25f, 64};
  request.sampling.dry = {0.8f, 1.5f, 3, 512, {"\n", "\xc3\xa9"}};
  request.sampling.xtc = {0.5f, 0.15f};
  request.sampling.mirostat = {true, 3.0f, 0.2f};
  request.sampling.logit_bias = {{4, -100.0f}, {7, 0.0f}};
  request.sampling.allowed_tokens = {1, 4, 7};
  request.sampling.stages = AllStagesBackwards();
  request.stop.max_tokens = 7;
  request.stop.min_tokens = 3;
  request.stop.stop_ids = {2, 3};
  request.stop.stop_strings = {"\n\n", "End"};
  request.stop.ignore_eos = true;
  request.tenant = "t";
  request.cache_salt = "s";
  request.priority = -3;
  request.timeout = absl::Milliseconds(1500);
  request.n = 2;
  request.best_of = 5;
  request.beam = {6, 0.5f};
  request.prompt_logprobs = 4;
  leg.attempt = AttemptId(2);
  leg.partner = {"decode-0", "127.0.0.1:7"};
  leg.worker_incarnation = Incarnation(kBig - 1);
  leg.source = {"prefill-1", "127.0.0.1:8"};
  leg.source_tokens = 48;
  return leg;
}

TEST(LegWireTest, LegRequestKeepsEveryField) {
  const auto leg = DecodeLegRequest(EncodeLegRequest(ExampleLeg()));
  ASSERT_TRUE(leg.ok()) << leg.status();
  const GenerateRequest& request = leg->request;
  EXPECT_EQ(request.id, RequestId(kBig));
  EXPECT_EQ(request.client_request_id, "client-7");
  EXPECT_EQ(request.model, "tiny");
  EXPECT_THAT(request.prompt, ElementsAre(0, 5, 49151));
  EXPECT_EQ(request.sampling.temperature, 0.0f);
  EXPECT_EQ(request.sampling.top_k, 40);
  EXPECT_EQ(request.sampling.top_p, 0.9f);
  EXPECT_EQ(request.sampling.seed, kBig);
  EXPECT_EQ(request.sampling.logprobs, 0);
  EXPECT_EQ(request.stop.max_tokens, 7);
  EXPECT_EQ(request.stop.min_tokens, 3);
  EXPECT_THAT(request.stop.stop_ids, ElementsAre(2, 3));
  EXPECT_THAT(request.stop.stop_strings, ElementsAre("\n\n", "End"));
  EXPECT_TRUE(request.stop.ignore_eos);
  EXPECT_EQ(request.tenant, "t");
  EXPECT_EQ(request.cache_salt, "s");
  EXPECT_EQ(request.priority, -3);
  EXPECT_EQ(request.timeout, absl::Milliseconds(1500));
  EXPECT_EQ(leg->attempt, AttemptId(2));
  EXPECT_EQ(leg->partner.worker, "decode-0");
  EXPECT_EQ(leg->partner.control, "127.0.0.1:7");
  EXPECT_EQ(leg->worker_incarnation, Incarnation(kBig - 1));
  EXPECT_EQ(leg->source.worker, "prefill-1");
  EXPECT_EQ(leg->source.control, "127.0.0.1:8");
  EXPECT_EQ(leg->source_tokens, 48);
}

TEST(LegWireTest, LegRequestKeepsEverySampler) {
  const auto leg = DecodeLegRequest(EncodeLegRequest(ExampleLeg()));
  ASSERT_TRUE(leg.ok()) << leg.status();
  const SamplingParams& sampling = leg->request.sampling;
  EXPECT_EQ(sampling.min_p, 0.05f);
  EXPECT_EQ(sampling.typical_p, 0.95f);
  EXPECT_EQ(sampling.top_n_sigma, 1.5f);
  EXPECT_EQ(sampling.penalties, (PenaltyParams{1.1f, -0.5f, 0.25f, 64}));
  EXPECT_EQ(sampling.dry, (DryParams{0.8f, 1.5f, 3, 512, {"\n", "\xc3\xa9"}}));
  EXPECT_EQ(sampling.xtc, (XtcParams{0.5f, 0.15f}));
  EXPECT_EQ(sampling.mirostat, (MirostatParams{true, 3.0f, 0.2f}));
  EXPECT_THAT(sampling.logit_bias,
              ElementsAre(std::pair<TokenId, float>(4, -100.0f),
                          std::pair<TokenId, float>(7, 0.0f)));
  EXPECT_THAT(sampling.allowed_tokens, ElementsAre(1, 4, 7));
  EXPECT_EQ(sampling.stages, AllStagesBackwards());
  EXPECT_EQ(leg->request.n, 2);
  EXPECT_EQ(leg->request.best_of, 5);
  EXPECT_EQ(leg->request.beam.width, 6);
  EXPECT_EQ(leg->request.beam.length_penalty, 0.5f);
  EXPECT_EQ(leg->request.prompt_logprobs, 4);
}

TEST(LegWireTest, LegRequestKeepsWhatIsAbsent) {
  LegRequest leg = ExampleLeg();
  leg.request.timeout = absl::InfiniteDuration();
  leg.request.sampling.logprobs = -1;
  leg.request.sampling.dry.breakers.clear();
  leg.request.prompt_logprobs = -1;
  leg.request.beam.width = 0;
  leg.partner = {};
  const auto decoded = DecodeLegRequest(EncodeLegRequest(leg));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->request.timeout, absl::InfiniteDuration());
  EXPECT_EQ(decoded->request.sampling.logprobs, -1);
  EXPECT_TRUE(decoded->request.sampling.dry.breakers.empty());
  EXPECT_EQ(decoded->request.prompt_logprobs, -1);
  EXPECT_EQ(decoded->request.beam.width, 0);
  EXPECT_EQ(decoded->partner.worker, "");
}

TEST(LegWireTest, LegRequestRefusesWhatCannotBe) {
  const std::string good = EncodeLegRequest(ExampleLeg());
  auto refused = [&](auto change) {
    return DecodeLegRequest(Changed<v1::LegRequest>(good, change)).status();
  };
  ExpectRefused(refused([](auto& p) { p.mutable_request()->set_id(0); }),
                "request.id");
  ExpectRefused(refused([](auto& p) { p.mutable_request()->set_n(0); }),
                "request.n");
  ExpectRefused(
      refused([](auto& p) { p.mutable_request()->set_best_of(0xffffffff); }),
      "request.best_of");
  ExpectRefused(refused([](auto& p) {
                  p.mutable_request()->mutable_beam()->set_width(0);
                }),
                "beam.width");
  ExpectRefused(refused([](auto& p) { p.set_attempt(0); }), "attempt");
  ExpectRefused(
      refused([](auto& p) { p.mutable_request()->set_timeout_us(-1); }),
      "request.timeout_us");
  ExpectRefused(refused([](auto& p) {
                  p.mutable_request()->set_timeout_us(
                      std::numeric_limits<int64_t>::max());
                }),
                "request.timeout_us");
  ExpectRefused(refused([](auto& p) { p.mutable_partner()->set_worker(""); }),
                "partner.worker");
  ExpectRefused(refused([](auto& p) {
                  p.mutable_partner()->set_control(std::string(300, 'a'));
                }),
                "partner.control");
  ExpectRefused(refused([](auto& p) { p.mutable_source()->set_worker(""); }),
                "source.worker");
  const absl::Status future = refused([](auto& p) {
    p.mutable_protocol()->set_min(2);
    p.mutable_protocol()->set_max(3);
  });
  EXPECT_EQ(future.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ErrorInfoOf(future).reason, ErrorReason::kIncompatibleWorker);
  EXPECT_EQ(refused([](auto& p) { p.clear_protocol(); }).code(),
            absl::StatusCode::kFailedPrecondition);
  // A range that reaches ours is welcome, and so are fields of the future.
  EXPECT_TRUE(refused([](auto& p) { p.mutable_protocol()->set_max(9); }).ok());
  std::string extended = good;
  extended += std::string("\xf8\x07\x01", 3);  // field 127, varint 1
  EXPECT_TRUE(DecodeLegRequest(extended).ok());
}

TokenFrame ExampleFrame() {
  TokenFrame frame;
  frame.attempt = AttemptId(3);
  frame.sample = 1;
  frame.first_index = 12;
  frame.tokens.push_back({5, "h\xc3\xa9", {-0.25f, {{5, -0.25f}, {0, -3}}}});
  frame.tokens.push_back({0, "", {}});
  frame.prompt = {1, {{-2.0f, {}}, {0.0f, {{9, 0.0f}}}}};
  frame.finish = FinishReason::kLength;
  frame.final_text = "rest";
  frame.usage = {26, 16, 14};
  frame.timings = {absl::Microseconds(1), absl::Microseconds(2),
                   absl::Microseconds(3), absl::Microseconds(4),
                   absl::Seconds(5)};
  frame.transfer = {"shm", kBig, 3, 4, 5};
  return frame;
}

TEST(LegWireTest, FrameKeepsEveryField) {
  const auto event = DecodeLegEvent(EncodeLegEvent(ExampleFrame()));
  ASSERT_TRUE(event.ok()) << event.status();
  const TokenFrame& frame = std::get<TokenFrame>(*event);
  EXPECT_EQ(frame.attempt, AttemptId(3));
  EXPECT_EQ(frame.sample, 1);
  EXPECT_EQ(frame.first_index, 12);
  ASSERT_EQ(frame.tokens.size(), 2u);
  EXPECT_EQ(frame.tokens[0].id, 5);
  EXPECT_EQ(frame.tokens[0].text, "h\xc3\xa9");
  EXPECT_EQ(frame.tokens[0].logprobs.logprob, -0.25f);
  EXPECT_THAT(frame.tokens[0].logprobs.top,
              ElementsAre(std::pair<TokenId, float>(5, -0.25f),
                          std::pair<TokenId, float>(0, -3.0f)));
  EXPECT_EQ(frame.tokens[1].id, 0);
  EXPECT_TRUE(frame.tokens[1].logprobs.top.empty());
  EXPECT_EQ(frame.prompt.first_index, 1);
  ASSERT_EQ(frame.prompt.tokens.size(), 2u);
  EXPECT_EQ(frame.prompt.tokens[0].logprob, -2.0f);
  EXPECT_TRUE(frame.prompt.tokens[0].top.empty());
  EXPECT_THAT(frame.prompt.tokens[1].top,
              ElementsAre(std::pair<TokenId, float>(9, 0.0f)));
  EXPECT_EQ(frame.finish, FinishReason::kLength);
  EXPECT_EQ(frame.final_text, "rest");
  EXPECT_EQ(frame.usage.prompt_tokens, 26);
  EXPECT_EQ(frame.usage.cached_tokens, 16);
  EXPECT_EQ(frame.usage.completion_tokens, 14);
  EXPECT_EQ(frame.timings.queue, absl::Microseconds(1));
  EXPECT_EQ(frame.timings.prefill, absl::Microseconds(2));
  EXPECT_EQ(frame.timings.transfer, absl::Microseconds(3));
  EXPECT_EQ(frame.timings.first_token, absl::Microseconds(4));
  EXPECT_EQ(frame.timings.decode, absl::Seconds(5));
  EXPECT_EQ(frame.transfer.transport, "shm");
  EXPECT_EQ(frame.transfer.bytes_moved, kBig);
  EXPECT_EQ(frame.transfer.blocks_moved, 3u);
  EXPECT_EQ(frame.transfer.blocks_shared, 4u);
  EXPECT_EQ(frame.transfer.decode_prompt_tokens, 5u);
}

TEST(LegWireTest, LegEventRefusesWhatCannotBe) {
  EXPECT_TRUE(std::holds_alternative<LegAccepted>(
      *DecodeLegEvent(EncodeLegEvent(LegAccepted{}))));
  const std::string good = EncodeLegEvent(ExampleFrame());
  auto refused = [&](auto change) {
    return DecodeLegEvent(Changed<v1::LegEvent>(good, change)).status();
  };
  ExpectRefused(
      refused([](auto& p) {
        p.mutable_frame()->set_finish(static_cast<v1::FinishReason>(99));
      }),
      "frame.finish");
  ExpectRefused(refused([](auto& p) {
                  p.mutable_frame()->set_first_index(kMaxWireCount + 1);
                }),
                "frame.first_index");
  ExpectRefused(
      refused([](auto& p) {
        p.mutable_frame()->mutable_prompt()->set_first_index(0xffffffff);
      }),
      "frame.prompt.first_index");
  ExpectRefused(refused([](auto& p) {
                  p.mutable_frame()->mutable_timings()->set_decode_us(-5);
                }),
                "timings.decode_us");
  ExpectRefused(refused([](auto& p) { p.Clear(); }), "event");
  ExpectRefused(DecodeLegEvent("\xff\xff\xff").status(),
                "penstock.v1.LegEvent");
}

TEST(LegWireTest, DeliveredTokensKeepTheirSamplesAndMirostat) {
  LegRequest leg = ExampleLeg();
  leg.request.best_of = 0;
  leg.request.beam.width = 0;
  leg.delivered = {{{5, 9.5f}, {0, -0.25f}}, {{49151, 0.0f}}};
  const std::string bytes = EncodeLegRequest(leg);
  const auto decoded = DecodeLegRequest(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->delivered, leg.delivered);
  // A sample that never drew with mirostat sends ids alone.
  v1::LegRequest proto;
  ASSERT_TRUE(proto.ParseFromString(bytes));
  EXPECT_EQ(proto.delivered(0).mirostat_mu_size(), 2);
  EXPECT_EQ(proto.delivered(1).mirostat_mu_size(), 0);
}

TEST(LegWireTest, DeliveredTokensThatCannotBeAreRefused) {
  LegRequest leg = ExampleLeg();
  leg.request.best_of = 0;
  leg.request.beam.width = 0;
  leg.delivered = {{{5, 9.5f}, {6, 9.0f}}, {}};
  const std::string good = EncodeLegRequest(leg);
  auto refused = [&](auto change) {
    return DecodeLegRequest(Changed<v1::LegRequest>(good, change)).status();
  };
  EXPECT_TRUE(refused([](auto&) {}).ok());
  ExpectRefused(refused([](auto& p) { p.add_delivered(); }), "delivered");
  ExpectRefused(refused([](auto& p) { p.mutable_request()->set_best_of(3); }),
                "delivered");
  ExpectRefused(refused([](auto& p) {
                  p.mutable_delivered(0)->mutable_mirostat_mu()->RemoveLast();
                }),
                "delivered.mirostat_mu");
  ExpectRefused(refused([](auto& p) {
                  p.mutable_delivered(0)->set_mirostat_mu(
                      1, std::numeric_limits<float>::quiet_NaN());
                }),
                "delivered.mirostat_mu");
  ExpectRefused(refused([](auto& p) {
                  for (int i = 0; i < 8; ++i) {
                    p.mutable_delivered(1)->add_tokens(i);
                  }
                }),
                "delivered.tokens");
  ExpectRefused(refused([](auto& p) {
                  p.mutable_request()->mutable_stop()->set_max_tokens(-1);
                }),
                "delivered.tokens");
}

TEST(LegWireTest, MirostatTravelsBesideTheFrameAndNotInIt) {
  TokenFrame frame = ExampleFrame();
  frame.tokens[0].mirostat_mu = 9.5f;
  const std::string bytes = EncodeLegEvent(frame);
  const auto event = DecodeLegEvent(bytes);
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(std::get<TokenFrame>(*event).tokens[0].mirostat_mu, 9.5f);
  EXPECT_EQ(std::get<TokenFrame>(*event).tokens[1].mirostat_mu, 0.0f);
  // What clients are sent is the same with and without it.
  v1::LegEvent with, without;
  ASSERT_TRUE(with.ParseFromString(bytes));
  ASSERT_TRUE(without.ParseFromString(EncodeLegEvent(ExampleFrame())));
  EXPECT_EQ(with.frame().SerializeAsString(),
            without.frame().SerializeAsString());
  EXPECT_EQ(without.mirostat_mu_size(), 0);

  auto refused = [&](auto change) {
    return DecodeLegEvent(Changed<v1::LegEvent>(bytes, change)).status();
  };
  ExpectRefused(refused([](auto& p) { p.add_mirostat_mu(1); }), "mirostat_mu");
  ExpectRefused(refused([](auto& p) {
                  p.set_mirostat_mu(1, std::numeric_limits<float>::infinity());
                }),
                "mirostat_mu");
}

}  // namespace
}  // namespace penstock
