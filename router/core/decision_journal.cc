#include "router/core/decision_journal.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "router/core/hindsight.h"

namespace penstock {
namespace {

std::string TextOf(const DecisionRecord::Leg& leg) {
  std::string text;
  for (const DecisionRecord::Candidate& candidate : leg.best) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", candidate.worker, " ",
                    candidate.hit_tokens, " ",
                    absl::FormatDuration(candidate.cost));
  }
  return absl::StrCat(text, " of ", leg.candidates);
}

std::string Text(const std::optional<absl::Duration>& duration) {
  return duration.has_value() ? absl::FormatDuration(*duration) : "none";
}

void LogDecision(const DecisionOutcome& outcome) {
  const DecisionRecord& record = *outcome.record;
  Log(LogLevel::kInfo, "decision",
      {{"request", absl::StrCat(absl::Hex(outcome.request.value()))},
       {"policy", record.policy},
       {"decode", outcome.decode},
       {"prefill", outcome.prefill},
       {"prompt", absl::StrCat(outcome.prompt_tokens)},
       {"predicted_hit", absl::StrCat(outcome.predicted_hit_tokens)},
       {"hit", outcome.hit_tokens.has_value()
                   ? absl::StrCat(*outcome.hit_tokens)
                   : "none"},
       {"predicted_first_token",
        absl::FormatDuration(outcome.predicted_first_token)},
       {"first_token", Text(outcome.first_token)},
       {"regret", absl::FormatDuration(record.Regret())},
       {"regret_in_hindsight", Text(RegretInHindsight(outcome))},
       {"decodes", TextOf(record.decode)},
       {"prefills",
        record.prefill.has_value() ? TextOf(*record.prefill) : "none"}});
}

}  // namespace

void DecisionJournal::Placed(const PlacementFacts& facts,
                             const Placement& placement) {
  ++placed_;
  Ended(facts.request, std::nullopt);
  Open& open = open_[facts.request];
  DecisionOutcome& outcome = open.outcome;
  outcome.request = facts.request;
  outcome.attempt = facts.attempt;
  outcome.prefill = facts.prefill;
  outcome.decode = facts.decode;
  outcome.prompt_tokens = facts.prompt_tokens;
  outcome.predicted_hit_tokens = facts.hit_tokens;
  outcome.predicted_first_token = placement.first_token;
  outcome.record = placement.record;
  open.placed = clock_->Now();
}

void DecisionJournal::FirstToken(RequestId request) {
  const auto it = open_.find(request);
  if (it == open_.end() || it->second.outcome.first_token.has_value()) return;
  it->second.outcome.first_token = clock_->Now() - it->second.placed;
}

void DecisionJournal::Ended(RequestId request, std::optional<int> found) {
  const auto it = open_.find(request);
  if (it == open_.end()) return;
  DecisionOutcome outcome = std::move(it->second.outcome);
  open_.erase(it);
  outcome.hit_tokens = found;
  Judge(outcome);
}

void DecisionJournal::Judge(const DecisionOutcome& outcome) {
  probe_->DecisionJudged(outcome);
  if (outcome.record != nullptr) LogDecision(outcome);
  if (!outcome.hit_tokens.has_value()) return;
  if (watch_.Note(outcome.prompt_tokens, outcome.predicted_hit_tokens,
                  *outcome.hit_tokens)) {
    Log(watch_.alarm() ? LogLevel::kWarning : LogLevel::kInfo,
        watch_.alarm() ? "workers do not find the hits that were predicted"
                       : "predicted hits are found again",
        {{"wrong_share", absl::StrCat(watch_.error())}});
  }
  probe_->HitsPredicted(watch_.error(), watch_.alarm());
}

}  // namespace penstock
