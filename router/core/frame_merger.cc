#include "router/core/frame_merger.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

// Of each sample. Prefill's tokens are on their way when decode starts: far
// fewer are ever held.
constexpr size_t kMaxHeldTokens = 4096;

const char* Name(LegKind leg) {
  return leg == LegKind::kPrefill ? "prefill" : "decode";
}

// Drops the frame's tokens before `index`.
void TrimTo(int index, TokenFrame& frame) {
  const int known = std::clamp<int>(index - frame.first_index, 0,
                                    static_cast<int>(frame.tokens.size()));
  frame.tokens.erase(frame.tokens.begin(), frame.tokens.begin() + known);
  frame.first_index += known;
}

void CopyFacts(const TokenFrame& from, TokenFrame& to) {
  to.usage = from.usage;
  to.timings = from.timings;
  to.transfer = from.transfer;
}

}  // namespace

FrameMerger::FrameMerger(const MergeOptions& options)
    : options_(options),
      samples_(options.samples),
      open_(options.samples),
      // The first prompt token has none.
      prompt_next_(std::max(1, options.scored_before)) {
  CHECK(options.starts.size() <= samples_.size());
  for (size_t i = 0; i < samples_.size(); ++i) {
    Sample& sample = samples_[i];
    if (i < options.starts.size()) {
      sample.first = sample.next = options.starts[i].first;
      sample.complete = options.starts[i].ended;
      open_ -= sample.complete;
    }
    sample.prefill.expected = sample.first;
    sample.decode.expected =
        sample.first + (options.handoff && !options.deferred ? 1 : 0);
  }
}

bool FrameMerger::prefilled() const {
  return options_.deferred ||
         std::all_of(samples_.begin(), samples_.end(), [](const Sample& s) {
           return s.complete || s.next > s.first;
         });
}

absl::Status FrameMerger::Push(LegKind leg, TokenFrame frame) {
  if (complete()) return absl::OkStatus();
  if (!frame.prompt.tokens.empty()) {
    RETURN_IF_ERROR(PushPrompt(leg, std::move(frame.prompt)));
    frame.prompt = {};
  }
  if (frame.tokens.empty() && frame.finish == FinishReason::kNone) {
    return absl::OkStatus();
  }
  return PushTokens(leg, std::move(frame));
}

absl::Status FrameMerger::PushPrompt(LegKind leg, PromptLogprobs part) {
  const int64_t end =
      int64_t{part.first_index} + static_cast<int64_t>(part.tokens.size());
  if (part.first_index < 1 || part.first_index > prompt_next_ ||
      end > options_.scored_prompt) {
    return absl::InternalError(absl::StrCat(
        "the ", Name(leg), " worker sent log-probabilities of prompt tokens ",
        part.first_index, " to ", end, " where ", prompt_next_, " of ",
        options_.scored_prompt, " was next"));
  }
  if (end <= prompt_next_) return absl::OkStatus();
  part.tokens.erase(part.tokens.begin(),
                    part.tokens.begin() + prompt_next_ - part.first_index);
  part.first_index = prompt_next_;
  prompt_next_ = static_cast<int>(end);
  TokenFrame frame;
  frame.prompt = std::move(part);
  ready_.push_back(std::move(frame));
  for (Sample& sample : samples_) Release(sample);
  return absl::OkStatus();
}

absl::Status FrameMerger::PushTokens(LegKind leg, TokenFrame frame) {
  if (frame.sample < 0 || frame.sample >= options_.samples) {
    return absl::InternalError(
        absl::StrCat("the ", Name(leg), " worker sent sample ", frame.sample,
                     " of ", options_.samples));
  }
  Sample& sample = samples_[frame.sample];
  Leg& from = leg == LegKind::kPrefill ? sample.prefill : sample.decode;
  if (sample.complete || from.ended) return absl::OkStatus();
  RETURN_IF_ERROR(CheckIndices(leg, frame, from.expected));
  from.ended = frame.finish != FinishReason::kNone;
  decoding_ |= leg == LegKind::kDecode && !frame.tokens.empty();
  TrimTo(from.expected, frame);
  if (frame.tokens.empty() && !from.ended) return absl::OkStatus();
  from.expected = frame.first_index + static_cast<int>(frame.tokens.size());
  if (Ready(sample, frame)) {
    Append(sample, std::move(frame));
    Release(sample);
    return absl::OkStatus();
  }
  held_tokens_ += frame.tokens.size();
  if (held_tokens_ > kMaxHeldTokens * samples_.size()) {
    return absl::InternalError(absl::StrCat(
        "the decode worker is ", held_tokens_, " tokens ahead of prefill"));
  }
  sample.held.push_back(std::move(frame));
  return absl::OkStatus();
}

absl::Status FrameMerger::CheckIndices(LegKind leg, const TokenFrame& frame,
                                       int expected) const {
  const int64_t end =
      int64_t{frame.first_index} + static_cast<int64_t>(frame.tokens.size());
  auto wrong = [&](auto... what) {
    return absl::InternalError(
        absl::StrCat("the ", Name(leg), " worker ", what...));
  };
  if (frame.first_index < 0 || frame.first_index > expected) {
    return wrong("sent token ", frame.first_index, " where token ", expected,
                 " was expected");
  }
  if (end > options_.max_tokens) {
    return wrong("sent ", end, " of at most ", options_.max_tokens, " tokens");
  }
  if (frame.finish != FinishReason::kNone && end < expected) {
    return wrong("ended after token ", end, " having sent ", expected);
  }
  return absl::OkStatus();
}

bool FrameMerger::Ready(const Sample& sample, const TokenFrame& frame) const {
  return frame.first_index <= sample.next &&
         prompt_next_ >= options_.scored_prompt;
}

void FrameMerger::Release(Sample& sample) {
  while (!sample.held.empty() && !sample.complete &&
         Ready(sample, sample.held.front())) {
    TokenFrame next = std::move(sample.held.front());
    sample.held.pop_front();
    held_tokens_ -= next.tokens.size();
    Append(sample, std::move(next));
  }
}

void FrameMerger::Append(Sample& sample, TokenFrame frame) {
  TrimTo(sample.next, frame);
  sample.complete = frame.finish != FinishReason::kNone;
  if (frame.tokens.empty() && !sample.complete) return;
  const int count = static_cast<int>(frame.tokens.size());
  sample.next = frame.first_index + count;
  received_ += count;
  if (frame.usage.prompt_tokens > 0) CopyFacts(frame, facts_);
  open_ -= sample.complete;
  // The leg that ends last need not be the one whose frame comes last.
  CopyFacts(open_ == 0 ? facts_ : TokenFrame(), frame);
  ready_.push_back(std::move(frame));
}

std::vector<TokenFrame> FrameMerger::Take() {
  return std::exchange(ready_, {});
}

}  // namespace penstock
