#include "common/peer/error_reason.h"

#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// As errors.proto and docs name them, with the gRPC code that clients see and
// whether trying again may help.
struct Known {
  ErrorReason reason;
  const char* name;
  absl::StatusCode code;
  bool retryable;
};
constexpr Known kKnown[] = {
    {ErrorReason::kUnknown, "UNKNOWN", absl::StatusCode(2), false},
    {ErrorReason::kInvalidField, "INVALID_FIELD", absl::StatusCode(3), false},
    {ErrorReason::kPromptEmpty, "PROMPT_EMPTY", absl::StatusCode(3), false},
    {ErrorReason::kPromptTooLong, "PROMPT_TOO_LONG", absl::StatusCode(3),
     false},
    {ErrorReason::kPromptNotUtf8, "PROMPT_NOT_UTF8", absl::StatusCode(3),
     false},
    {ErrorReason::kModelNotFound, "MODEL_NOT_FOUND", absl::StatusCode(5),
     false},
    {ErrorReason::kFieldNotImplemented, "FIELD_NOT_IMPLEMENTED",
     absl::StatusCode(12), false},
    {ErrorReason::kQueueFull, "QUEUE_FULL", absl::StatusCode(8), true},
    {ErrorReason::kKvTooSmall, "KV_TOO_SMALL", absl::StatusCode(8), false},
    {ErrorReason::kNoWorkers, "NO_WORKERS", absl::StatusCode(14), true},
    {ErrorReason::kWorkerLost, "WORKER_LOST", absl::StatusCode(14), true},
    {ErrorReason::kTransferFailed, "TRANSFER_FAILED", absl::StatusCode(14),
     true},
    {ErrorReason::kDeadline, "DEADLINE", absl::StatusCode(4), false},
    {ErrorReason::kCancelled, "CANCELLED", absl::StatusCode(1), false},
    {ErrorReason::kDraining, "DRAINING", absl::StatusCode(14), true},
    {ErrorReason::kIncompatibleWorker, "INCOMPATIBLE_WORKER",
     absl::StatusCode(9), false},
    {ErrorReason::kInternal, "INTERNAL", absl::StatusCode(13), false},
};

TEST(ErrorReasonTest, EveryReasonKeepsItsNameCodeAndAdvice) {
  for (const Known& known : kKnown) {
    EXPECT_EQ(ReasonName(known.reason), known.name);
    EXPECT_EQ(CodeOf(known.reason), known.code) << known.name;
    const absl::Status status =
        MakeError(known.reason, "why", "a.field", absl::Milliseconds(1234));
    EXPECT_EQ(status.code(), known.code) << known.name;
    EXPECT_EQ(status.message(), "why");
    EXPECT_EQ(OutcomeName(status), known.name);
    const ErrorInfo info = ErrorInfoOf(status);
    EXPECT_EQ(info.reason, known.reason) << known.name;
    EXPECT_EQ(info.retryable, known.retryable) << known.name;
    EXPECT_EQ(info.field, "a.field");
    EXPECT_EQ(info.retry_after, absl::Milliseconds(1234));
    EXPECT_EQ(info.kept_tokens, 0);
  }
  EXPECT_EQ(OutcomeName(absl::OkStatus()), "ok");
}

TEST(ErrorReasonTest, APlainStatusIsKnownByItsCode) {
  const std::pair<absl::StatusCode, ErrorReason> kByCode[] = {
      {absl::StatusCode::kInvalidArgument, ErrorReason::kInvalidField},
      {absl::StatusCode::kNotFound, ErrorReason::kModelNotFound},
      {absl::StatusCode::kUnimplemented, ErrorReason::kFieldNotImplemented},
      {absl::StatusCode::kResourceExhausted, ErrorReason::kQueueFull},
      {absl::StatusCode::kUnavailable, ErrorReason::kWorkerLost},
      {absl::StatusCode::kDeadlineExceeded, ErrorReason::kDeadline},
      {absl::StatusCode::kCancelled, ErrorReason::kCancelled},
      {absl::StatusCode::kFailedPrecondition, ErrorReason::kIncompatibleWorker},
      {absl::StatusCode::kInternal, ErrorReason::kInternal},
      {absl::StatusCode::kDataLoss, ErrorReason::kInternal},
      {absl::StatusCode::kAborted, ErrorReason::kUnknown},
  };
  for (const auto& [code, reason] : kByCode) {
    const ErrorInfo info = ErrorInfoOf(absl::Status(code, "why"));
    EXPECT_EQ(info.reason, reason) << code;
    EXPECT_EQ(info.retryable, kKnown[static_cast<int>(reason)].retryable)
        << code;
    EXPECT_EQ(info.field, "");
    EXPECT_EQ(info.retry_after, absl::ZeroDuration());
    EXPECT_EQ(info.kept_tokens, 0);
  }
}

TEST(ErrorReasonTest, KeptTokensTravelBesideTheReason) {
  const absl::Status status =
      WithKeptTokens(MakeError(ErrorReason::kDraining, "drains", "", {}), 77);
  EXPECT_EQ(ErrorInfoOf(status).kept_tokens, 77);
  EXPECT_EQ(ErrorInfoOf(status).reason, ErrorReason::kDraining);
  // Of a plain status too, and nothing is an amount.
  EXPECT_EQ(
      ErrorInfoOf(WithKeptTokens(absl::CancelledError(""), 1)).kept_tokens, 1);
  EXPECT_EQ(ErrorInfoOf(WithKeptTokens(status, 0)).kept_tokens, 0);
  EXPECT_DEATH(WithKeptTokens(absl::OkStatus(), 1), "");
  EXPECT_DEATH(WithKeptTokens(status, -1), "");
}

// What is attached comes from another process: what does not parse is as if
// nothing were attached.
TEST(ErrorReasonTest, AMangledPayloadIsIgnored) {
  auto attached = [](const std::string& payload) {
    absl::Status status = absl::UnavailableError("why");
    status.SetPayload("penstock/error", absl::Cord(payload));
    return ErrorInfoOf(status);
  };
  // So that the others are known to be refused for what they are.
  EXPECT_EQ(attached("16\nf\n5").reason, ErrorReason::kInternal);
  EXPECT_EQ(attached("0\nf\n5").reason, ErrorReason::kUnknown);
  for (const char* payload :
       {"", "16", "16\nf", "16\nf\n5\n", "-1\nf\n5", "17\nf\n5", "x\nf\n5",
        "16\nf\nx", "99999999999\nf\n5"}) {
    const ErrorInfo info = attached(payload);
    EXPECT_EQ(info.reason, ErrorReason::kWorkerLost) << payload;
    EXPECT_EQ(info.field, "") << payload;
    EXPECT_EQ(info.retry_after, absl::ZeroDuration()) << payload;
    EXPECT_TRUE(info.retryable) << payload;
  }
  for (const char* kept : {"", "x", "-5", "99999999999"}) {
    absl::Status status = absl::UnavailableError("why");
    status.SetPayload("penstock/kept-tokens", absl::Cord(kept));
    EXPECT_EQ(ErrorInfoOf(status).kept_tokens, 0) << kept;
  }
}

}  // namespace
}  // namespace penstock
