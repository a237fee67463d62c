#include "common/engine/core_turns.h"

#include <algorithm>

#include "common/base/check.h"

namespace penstock {
namespace {

// One part in so many is for answers.
constexpr int kParts = 8;
// The prompt that is waited for may end, or its worker die.
constexpr absl::Duration kLookAgain = absl::Milliseconds(10);

}  // namespace

absl::Duration AnswerTurn(absl::Duration took, int workers,
                          absl::Duration longest_gap) {
  const absl::Duration fair = took * kParts * workers;
  if (longest_gap <= absl::ZeroDuration()) return fair;
  // The next token comes at the end of a step.
  return std::clamp(longest_gap - took, absl::ZeroDuration(), fair);
}

CoreTurns::CoreTurns(absl::Duration longest_gap, Ports ports)
    : longest_gap_(longest_gap), ports_(ports) {
  CHECK(!shares() || (ports_.clock != nullptr && ports_.timers != nullptr &&
                      ports_.probe != nullptr));
}

CoreTurns::~CoreTurns() {
  if (!shares()) return;
  ports_.timers->Cancel(timer_);
  ports_.ledger->Release();
}

bool CoreTurns::MayBegin(CoreUse use) {
  if (!shares()) return true;
  const Instant now = ports_.clock->Now();
  if (use == CoreUse::kAnswers) {
    const CoreClaims others = ports_.ledger->Others(now);
    const Instant turn =
        began_ + AnswerTurn(took_, 1 + others.answers, longest_gap_);
    if (others.prompts > 0 && now < turn) {
      if (!waits_) wait_began_ = now;
      waits_ = true;
      // Still one of those that share.
      ports_.ledger->Claim(use, now);
      claimed_ = true;
      if (timer_ == 0) {
        timer_ = ports_.timers->Schedule(std::min(turn, now + kLookAgain),
                                         [this] { timer_ = 0; });
      }
      return false;
    }
  }
  EndWait();
  return true;
}

void CoreTurns::EndWait() {
  if (!waits_) return;
  waits_ = false;
  ports_.timers->Cancel(timer_);
  timer_ = 0;
  ports_.probe->WaitedForCores(ports_.clock->Now() - wait_began_);
}

void CoreTurns::Began(CoreUse use) {
  if (!shares()) return;
  use_ = use;
  began_ = ports_.clock->Now();
  ports_.ledger->Claim(use_, began_);
  claimed_ = true;
}

void CoreTurns::Renew() {
  if (shares()) ports_.ledger->Claim(use_, ports_.clock->Now());
}

void CoreTurns::Ended() {
  if (!shares() || use_ != CoreUse::kAnswers) return;
  took_ = ports_.clock->Now() - began_;
}

void CoreTurns::Idle() {
  if (!shares()) return;
  EndWait();
  if (claimed_) ports_.ledger->Release();
  claimed_ = false;
}

}  // namespace penstock
