#include "kernels/timer/timer_backend.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/host/plan_check.h"

namespace penstock {
namespace {

// Of no other backend: pages hold nothing.
constexpr NumericsId kNumerics(0x74696d6572000001);
// Special tokens, which would end answers, are the first or the last ones.
constexpr int kSpecialTokens = 512;

bool Sane(absl::Duration time) {
  return time >= absl::ZeroDuration() && time != absl::InfiniteDuration();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TimerBackend>> TimerBackend::Create(
    Options options) {
  const size_t block =
      KvLayout::For(options.spec, options.kv_type).block_bytes();
  if (options.arena.bytes.size() < block) {
    return absl::InvalidArgumentError(absl::StrCat(
        "arena: ", options.arena.bytes.size(), " bytes hold no KV block of ",
        block, " bytes; give more KV memory"));
  }
  if (options.max_rows <= 0 || options.max_sequences <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_rows and max_sequences must be positive, not ",
                     options.max_rows, " and ", options.max_sequences));
  }
  if (!Sane(options.step_time) || !Sane(options.row_time)) {
    return absl::InvalidArgumentError(
        "step_time and row_time must be finite and not negative");
  }
  return std::unique_ptr<TimerBackend>(new TimerBackend(std::move(options)));
}

TimerBackend::TimerBackend(Options options)
    : options_(std::move(options)),
      layout_(KvLayout::For(options_.spec, options_.kv_type)),
      caps_({.name = "timer",
             .numerics = kNumerics,
             .batch_invariant = true,
             .max_rows = options_.max_rows,
             .max_sequences = options_.max_sequences,
             .layer_progress = false}),
      runner_(
          {.run = [this](const StepPlan& plan,
                         const StepRunner::Progress&) { return RunStep(plan); },
           .wake = options_.wake}) {}

TokenId TimerBackend::TokenAfter(TokenId token, uint64_t position,
                                 int vocab_size) {
  uint64_t x = position * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(token);
  x ^= x >> 31;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 29;
  if (vocab_size <= 2 * kSpecialTokens) {
    return static_cast<TokenId>(x % static_cast<uint64_t>(vocab_size));
  }
  return kSpecialTokens +
         static_cast<TokenId>(
             x % static_cast<uint64_t>(vocab_size - 2 * kSpecialTokens));
}

void TimerBackend::Submit(StepPlan plan) {
  CheckPlan(plan, {.max_rows = caps_.max_rows,
                   .max_sequences = caps_.max_sequences,
                   .vocab_size = options_.spec.vocab_size,
                   .arena_blocks = static_cast<int64_t>(
                       options_.arena.bytes.size() / layout_.block_bytes())});
  runner_.Submit(std::move(plan));
}

StepResult TimerBackend::RunStep(const StepPlan& plan) const {
  const auto end =
      std::chrono::steady_clock::now() +
      absl::ToChronoNanoseconds(options_.step_time +
                                plan.tokens.size() * options_.row_time);
  StepResult result;
  for (const SampleRow& row : plan.samples) {
    SampledToken sampled;
    sampled.token =
        TokenAfter(plan.tokens[row.row] + static_cast<TokenId>(row.sample),
                   row.position, options_.spec.vocab_size);
    while (std::binary_search(row.banned.begin(), row.banned.end(),
                              sampled.token)) {
      sampled.token = (sampled.token + 1) % options_.spec.vocab_size;
    }
    result.sampled.push_back(std::move(sampled));
  }
  result.scored.resize(plan.scores.size());
  std::this_thread::sleep_until(end);
  return result;
}

}  // namespace penstock
