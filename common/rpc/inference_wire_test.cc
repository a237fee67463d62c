#include "common/rpc/inference_wire.h"

#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "common/rpc/leg_wire.h"
#include "common/rpc/wire_check.h"
#include "common/rpc/wire_expectations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/inference.pb.h"
#include "protos/worker.pb.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::GenerateRequest ExampleRequest() {
  v1::GenerateRequest proto;
  proto.set_text("hello");
  return proto;
}

absl::StatusOr<ClientRequest> Decode(const v1::GenerateRequest& proto) {
  return DecodeGenerateRequest(proto.SerializeAsString());
}

TEST(InferenceWireTest, AbsentFieldsHaveTheirDefaults) {
  const auto client = Decode(ExampleRequest());
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(std::get<std::string>(client->prompt), "hello");
  EXPECT_FALSE(client->has_seed);
  EXPECT_EQ(client->request.sampling.temperature, 1.0f);
  EXPECT_EQ(client->request.sampling.top_k, 0);
  EXPECT_EQ(client->request.sampling.top_p, 1.0f);
  EXPECT_EQ(client->request.sampling.logprobs, -1);
  EXPECT_EQ(client->request.stop.max_tokens, 16);
  EXPECT_FALSE(client->request.stop.ignore_eos);
  EXPECT_EQ(client->request.timeout, absl::InfiniteDuration());
}

TEST(InferenceWireTest, ZeroIsAValueAndNotADefault) {
  v1::GenerateRequest proto = ExampleRequest();
  proto.mutable_sampling()->set_temperature(0);
  proto.mutable_sampling()->set_seed(0);
  proto.mutable_sampling()->set_logprobs(0);
  proto.mutable_stop()->set_max_tokens(0);
  const auto client = Decode(proto);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(client->request.sampling.temperature, 0.0f);
  EXPECT_TRUE(client->has_seed);
  EXPECT_EQ(client->request.sampling.logprobs, 0);
  EXPECT_EQ(client->request.stop.max_tokens, 0);
}

// The literals are the API's defaults, as the proto's comments state them.
TEST(InferenceWireTest, EverySamplingFieldHasItsDefault) {
  const auto client = Decode(ExampleRequest());
  ASSERT_TRUE(client.ok()) << client.status();
  const SamplingParams& sampling = client->request.sampling;
  EXPECT_EQ(sampling.min_p, 0.0f);
  EXPECT_EQ(sampling.typical_p, 1.0f);
  EXPECT_EQ(sampling.top_n_sigma, 0.0f);
  EXPECT_EQ(sampling.penalties, (PenaltyParams{1.0f, 0.0f, 0.0f, -1}));
  EXPECT_EQ(sampling.dry,
            (DryParams{0.0f, 1.75f, 2, -1, {"\n", ":", "\"", "*"}}));
  EXPECT_EQ(sampling.xtc.probability, 0.0f);
  EXPECT_EQ(sampling.xtc.threshold, 0.1f);
  EXPECT_EQ(sampling.mirostat, (MirostatParams{false, 5.0f, 0.1f}));
  EXPECT_TRUE(sampling.logit_bias.empty());
  EXPECT_TRUE(sampling.allowed_tokens.empty());
  EXPECT_TRUE(sampling.stages.empty());
  EXPECT_EQ(client->request.stop.min_tokens, 0);
  EXPECT_EQ(client->request.n, 1);
  EXPECT_EQ(client->request.best_of, 0);
  EXPECT_EQ(client->request.beam.width, 0);
  EXPECT_EQ(client->request.prompt_logprobs, -1);
}

TEST(InferenceWireTest, AnswersAndScoresAreRead) {
  v1::GenerateRequest proto = ExampleRequest();
  proto.set_n(2);
  proto.set_best_of(3);
  proto.set_prompt_logprobs(0);
  proto.mutable_beam()->set_width(4);
  auto client = Decode(proto);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(client->request.n, 2);
  EXPECT_EQ(client->request.best_of, 3);
  EXPECT_EQ(client->request.prompt_logprobs, 0);
  EXPECT_EQ(client->request.beam.width, 4);
  EXPECT_EQ(client->request.beam.length_penalty, 1.0f);
  proto.mutable_beam()->set_length_penalty(0);
  client = Decode(proto);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(client->request.beam.length_penalty, 0.0f);
}

TEST(InferenceWireTest, TokenListsComeOutSortedAndOnce) {
  v1::GenerateRequest proto = ExampleRequest();
  for (int token : {9, 3, 9, -4}) {
    proto.mutable_sampling()->add_allowed_tokens(token);
    (*proto.mutable_sampling()->mutable_logit_bias())[token] = token * 0.5f;
  }
  // An empty list of breakers is not an absent one.
  proto.mutable_sampling()->mutable_dry_breakers();
  const auto client = Decode(proto);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_THAT(client->request.sampling.allowed_tokens, ElementsAre(-4, 3, 9));
  EXPECT_THAT(client->request.sampling.logit_bias,
              ElementsAre(std::pair<TokenId, float>(-4, -2.0f),
                          std::pair<TokenId, float>(3, 1.5f),
                          std::pair<TokenId, float>(9, 4.5f)));
  EXPECT_TRUE(client->request.sampling.dry.breakers.empty());
}

TEST(InferenceWireTest, PromptsComeAsTextMessagesOrIds) {
  v1::GenerateRequest proto = ExampleRequest();
  v1::ChatMessage* message = proto.mutable_messages()->add_messages();
  message->set_role("user");
  message->set_content("hi");
  proto.mutable_messages()->set_add_generation_prompt(false);
  auto client = Decode(proto);
  ASSERT_TRUE(client.ok()) << client.status();
  const ChatInput& chat = std::get<ChatInput>(client->prompt);
  EXPECT_EQ(chat.messages[0].role, "user");
  EXPECT_EQ(chat.messages[0].content, "hi");
  EXPECT_FALSE(chat.options.add_generation_prompt);

  proto.mutable_ids()->add_ids(0);
  proto.mutable_ids()->add_ids(-7);
  client = Decode(proto);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_THAT(std::get<std::vector<TokenId>>(client->prompt),
              ElementsAre(0, -7));
}

TEST(InferenceWireTest, AnEmptyPromptIsNamed) {
  auto reason = [](const v1::GenerateRequest& proto) {
    const ErrorInfo info = ErrorInfoOf(Decode(proto).status());
    EXPECT_EQ(info.reason, ErrorReason::kPromptEmpty);
    return info.field;
  };
  v1::GenerateRequest proto;
  EXPECT_EQ(reason(proto), "prompt");
  proto.set_text("");
  EXPECT_EQ(reason(proto), "text");
  proto.mutable_messages();
  EXPECT_EQ(reason(proto), "messages");
  proto.mutable_ids();
  EXPECT_EQ(reason(proto), "ids");
}

TEST(InferenceWireTest, ASessionIsForTheRouter) {
  v1::GenerateRequest proto = ExampleRequest();
  proto.set_session_id("conversation 5");
  EXPECT_EQ(Decode(proto)->request.session, "conversation 5");
  proto.set_session_id(std::string(100000, 'x'));
  EXPECT_EQ(ErrorInfoOf(Decode(proto).status()).field, "session_id");
}

TEST(InferenceWireTest, WhatIsNotBuiltIsRefusedByName) {
  auto field = [](auto change) {
    v1::GenerateRequest proto = ExampleRequest();
    change(proto);
    const absl::Status status = Decode(proto).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    return ErrorInfoOf(status).field;
  };
  EXPECT_EQ(field([](auto& p) { p.set_return_ids(false); }), "return_ids");
  EXPECT_EQ(field([](auto& p) { p.set_adapter(""); }), "adapter");
  EXPECT_EQ(field([](auto& p) { p.mutable_constraint(); }), "constraint");
  v1::GenerateRequest one = ExampleRequest();
  one.set_return_ids(true);
  EXPECT_TRUE(Decode(one).ok());
}

TEST(InferenceWireTest, RefusesWhatCannotBe) {
  auto status = [](auto change) {
    v1::GenerateRequest proto = ExampleRequest();
    change(proto);
    return Decode(proto).status();
  };
  ExpectRefused(status([](auto& p) { p.set_best_of(0); }), "best_of");
  ExpectRefused(status([](auto& p) { p.mutable_beam(); }), "beam.width");
  ExpectRefused(status([](auto& p) { p.set_prompt_logprobs(-1); }),
                "prompt_logprobs");
  ExpectRefused(
      status([](auto& p) {
        p.mutable_sampling()->add_stages(v1::SAMPLER_STAGE_UNSPECIFIED);
      }),
      "sampling.stages");
  ExpectRefused(
      status([](auto& p) {
        p.mutable_sampling()->add_stages(static_cast<v1::SamplerStage>(10));
      }),
      "sampling.stages");
  ExpectRefused(status([](auto& p) { p.set_timeout_ms(0); }), "timeout_ms");
  ExpectRefused(status([](auto& p) { p.mutable_sampling()->set_logprobs(-1); }),
                "sampling.logprobs");
  ExpectRefused(status([](auto& p) { p.set_tenant(std::string(257, 't')); }),
                "tenant");
  ExpectRefused(
      status([](auto& p) { p.set_request_id(std::string(257, 't')); }),
      "request_id");
  v1::GenerateRequest forever = ExampleRequest();
  forever.set_timeout_ms(std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(Decode(forever).ok());
}

// A string field on the wire, whatever its bytes.
std::string Field(int number, const std::string& bytes) {
  return absl::StrCat(std::string(1, static_cast<char>(number << 3 | 2)),
                      std::string(1, static_cast<char>(bytes.size())), bytes);
}

TEST(InferenceWireTest, TextThatIsNotUtf8IsNamed) {
  const absl::Status text = DecodeGenerateRequest(Field(2, "a\xff")).status();
  EXPECT_EQ(ErrorInfoOf(text).reason, ErrorReason::kPromptNotUtf8);
  EXPECT_EQ(ErrorInfoOf(text).field, "text");
  // messages.messages[0].content
  const absl::Status chat =
      DecodeGenerateRequest(Field(3, Field(1, Field(2, "\xc3\x28")))).status();
  EXPECT_EQ(ErrorInfoOf(chat).reason, ErrorReason::kPromptNotUtf8);
  EXPECT_EQ(ErrorInfoOf(chat).field, "messages.messages.content");
  ExpectRefused(DecodeGenerateRequest("\x12\x7f").status(),
                "penstock.v1.GenerateRequest");
}

TokenFrame ExampleFrame() {
  TokenFrame frame;
  frame.attempt = AttemptId(3);
  frame.first_index = 12;
  frame.tokens.push_back({5, "h\xc3\xa9", {-0.25f, {{5, -0.25f}}}});
  frame.finish = FinishReason::kLength;
  frame.usage = {26, 16, 14};
  return frame;
}

TEST(InferenceWireTest, ResponseHasItsHeadOnce) {
  const ResponseHead head{"r-1", "prefill-0", "decode-0"};
  v1::GenerateResponse first;
  ASSERT_TRUE(
      first.ParseFromString(EncodeGenerateResponse(ExampleFrame(), &head)));
  EXPECT_EQ(first.request_id(), "r-1");
  EXPECT_EQ(first.placement().prefill(), "prefill-0");
  EXPECT_EQ(first.placement().decode(), "decode-0");
  EXPECT_EQ(first.frame().tokens(0).text(), "h\xc3\xa9");
  v1::GenerateResponse next;
  ASSERT_TRUE(
      next.ParseFromString(EncodeGenerateResponse(ExampleFrame(), nullptr)));
  EXPECT_FALSE(next.has_placement());
  EXPECT_EQ(next.request_id(), "");
  // The bytes that a worker made are the bytes that a client gets.
  v1::LegEvent event;
  ASSERT_TRUE(event.ParseFromString(EncodeLegEvent(ExampleFrame())));
  EXPECT_EQ(event.frame().SerializeAsString(),
            next.frame().SerializeAsString());
}

TEST(InferenceWireTest, SmallMethodsRoundTrip) {
  v1::TokenizeRequest tokenize;
  tokenize.set_model("m");
  tokenize.set_text("t");
  tokenize.set_parse_special(false);
  const auto text = DecodeTokenizeRequest(tokenize.SerializeAsString());
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->model, "m");
  EXPECT_EQ(std::get<std::string>(text->input), "t");
  EXPECT_FALSE(text->parse_special);

  v1::TokenizeResponse ids;
  ASSERT_TRUE(ids.ParseFromString(EncodeTokenizeResponse({3, 1})));
  EXPECT_THAT(ids.ids(), ElementsAre(3, 1));

  ExpectRefused(DecodeAbortRequest("").status(), "request_id");
  EXPECT_THAT(std::string(DecodeAbortRequest("").status().message()),
              HasSubstr("empty"));
}

TEST(WireTest, DurationsAreClampedToWhatIsAccepted) {
  EXPECT_EQ(ToWireMicros(absl::Seconds(-1)), 0);
  const int64_t longest = ToWireMicros(absl::InfiniteDuration());
  EXPECT_TRUE(WireMicros("f", longest).ok());
  ExpectRefused(WireMicros("f", longest + 1).status(), "f");
}

}  // namespace
}  // namespace penstock
