#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "decode_worker/core/answer_group.h"

// What becomes of a search's beams when each has drawn.

namespace penstock {

void AnswerGroup::AdvanceBeams() {
  std::vector<BeamSearch::Beam> beams;
  for (const Beam& beam : beams_) {
    beams.push_back({beam.sum, &beam.drawn->logprobs.top});
  }
  std::map<std::pair<int, int>, Child> children;
  BeamSearch::Step step =
      search_.Advance(beams, [&](const BeamSearch::Continuation& next) {
        return Grow(next, children[{next.parent, next.choice}]);
      });
  auto child_of = [&](const BeamSearch::Continuation& next) -> Child& {
    return children.at({next.parent, next.choice});
  };
  auto keep = [&](const BeamSearch::Continuation& next) {
    search_.Keep(KeptOf(beams_[next.parent], child_of(next).delivery),
                 next.sum);
  };
  for (const BeamSearch::Continuation& next : step.ended) keep(next);
  const int length = static_cast<int>(beams_[0].tokens.size()) + 1;
  output_->MarkToken(length - 1);
  bool over = step.live.empty() || search_.Settled(step.live[0].sum, length);
  if (!over &&
      child_of(step.live[0]).delivery.finish == FinishReason::kLength) {
    for (const BeamSearch::Continuation& next : step.live) keep(next);
    over = true;
  }
  if (over) {
    std::vector<KeptAnswer> answers = search_.Take(request_->n);
    for (const KeptAnswer& answer : answers) {
      made_ += static_cast<int>(answer.tokens.size());
    }
    children.clear();
    Stop();
    DeliverKept(std::move(answers));
    return;
  }
  std::vector<Beam> next_beams;
  for (const BeamSearch::Continuation& next : step.live) {
    Beam beam;
    beam.sequence = std::move(child_of(next).sequence);
    beam.sum = next.sum;
    beam.tokens = beams_[next.parent].tokens;
    beam.tokens.push_back(child_of(next).delivery.token);
    next_beams.push_back(std::move(beam));
  }
  ReplaceBeams(std::move(next_beams));
}

// Makes the continuation's sequence, to see what its token does to it.
BeamSearch::Fate AnswerGroup::Grow(const BeamSearch::Continuation& next,
                                   Child& child) {
  const Beam& parent = beams_[next.parent];
  const Sequence& sequence = parent.sequence != nullptr
                                 ? *parent.sequence
                                 : *context_->engine->Find(parent.id);
  const auto& [token, logprob] = parent.drawn->logprobs.top[next.choice];
  if (sequence.draw_state().MustGoOn(sequence.generated()) &&
      std::binary_search(stop_tokens_.begin(), stop_tokens_.end(), token)) {
    return BeamSearch::Fate::kBarred;
  }
  SampledToken chosen{token, ShownOf(parent.drawn->logprobs), 0};
  if (request_->sampling.logprobs >= 0) chosen.logprobs.logprob = logprob;
  child.sequence = sequence.Fork(0);
  child.delivery = child.sequence->Append(chosen);
  return child.delivery.finish == FinishReason::kStop
             ? BeamSearch::Fate::kEnds
             : BeamSearch::Fate::kLives;
}

KeptAnswer AnswerGroup::KeptOf(const Beam& parent,
                               const TokenDelivery& delivery) const {
  KeptAnswer answer;
  answer.tokens = parent.tokens;
  answer.tokens.push_back(delivery.token);
  answer.final_text = delivery.final_text;
  answer.finish = delivery.finish;
  return answer;
}

void AnswerGroup::ReplaceBeams(std::vector<Beam> next) {
  SequenceId sibling = prompt_ ? prompt_ : beams_[0].id;
  for (Beam& beam : next) {
    auto added = context_->engine->Add(std::move(beam.sequence), this,
                                       {AfterDraw::kWait, sibling});
    if (!added.ok()) {
      for (const Beam& there : next) Retire(there.id);
      End(added.status());
      return;
    }
    beam.id = *added;
    if (!sibling) sibling = *added;
  }
  std::vector<Beam> before = std::exchange(beams_, std::move(next));
  Retire(std::exchange(prompt_, SequenceId()));
  for (const Beam& beam : before) Retire(beam.id);
}

}  // namespace penstock
