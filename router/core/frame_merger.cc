#include "router/core/frame_merger.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// Prefill's token is on its way when decode starts: far fewer are ever held.
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

}  // namespace

absl::Status FrameMerger::Push(LegKind leg, TokenFrame frame) {
  Leg& from = leg == LegKind::kPrefill ? prefill_ : decode_;
  if (complete_ || from.ended) return absl::OkStatus();
  if (frame.sample != 0) {
    return absl::InternalError(absl::StrCat(
        "the ", Name(leg), " worker sent sample ", frame.sample, " of 1"));
  }
  const int64_t end =
      int64_t{frame.first_index} + static_cast<int64_t>(frame.tokens.size());
  if (frame.first_index < 0 || frame.first_index > from.expected ||
      end > std::numeric_limits<int>::max()) {
    return absl::InternalError(absl::StrCat(
        "the ", Name(leg), " worker sent token ", frame.first_index,
        " where token ", from.expected, " was expected"));
  }
  from.ended = frame.finish != FinishReason::kNone;
  if (from.ended && end < from.expected) {
    return absl::InternalError(absl::StrCat("the ", Name(leg),
                                            " worker ended after token ", end,
                                            " having sent ", from.expected));
  }
  from.gave |= !frame.tokens.empty();
  TrimTo(from.expected, frame);
  if (frame.tokens.empty() && !from.ended) return absl::OkStatus();
  from.expected = static_cast<int>(end);
  if (frame.first_index <= next_) {
    Append(std::move(frame));
    while (!held_.empty() && !complete_ && held_.front().first_index <= next_) {
      TokenFrame next = std::move(held_.front());
      held_.pop_front();
      held_tokens_ -= next.tokens.size();
      Append(std::move(next));
    }
    return absl::OkStatus();
  }
  held_tokens_ += frame.tokens.size();
  if (held_tokens_ > kMaxHeldTokens) {
    return absl::InternalError(absl::StrCat(
        "the decode worker is ", held_tokens_, " tokens ahead of prefill"));
  }
  held_.push_back(std::move(frame));
  return absl::OkStatus();
}

void FrameMerger::Append(TokenFrame frame) {
  TrimTo(next_, frame);
  complete_ = frame.finish != FinishReason::kNone;
  if (frame.tokens.empty() && !complete_) return;
  next_ = frame.first_index + static_cast<int>(frame.tokens.size());
  ready_.push_back(std::move(frame));
}

std::vector<TokenFrame> FrameMerger::Take() {
  return std::exchange(ready_, {});
}

}  // namespace penstock
