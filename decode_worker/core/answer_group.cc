#include "decode_worker/core/answer_group.h"

#include <algorithm>
#include <utility>

#include "common/base/sometimes.h"
#include "common/base/status_macros.h"
#include "common/engine/resume.h"
#include "common/model/kv_layout.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

std::vector<BlockHold> Shared(const std::vector<BlockHold>& blocks) {
  std::vector<BlockHold> shared;
  shared.reserve(blocks.size());
  for (const BlockHold& hold : blocks) shared.push_back(hold.Share());
  return shared;
}

// The sequence's first `computed` positions lie in `blocks`.
void PlaceOn(std::vector<BlockHold> blocks, int computed, Sequence& sequence) {
  sequence.blocks = std::move(blocks);
  sequence.computed = computed;
  sequence.scored = sequence.prompt_tokens();
  sequence.looked_up = true;
}

}  // namespace

AnswerGroup::AnswerGroup(const WorkerContext* context, const LegRequest* leg,
                         BlockHash root, LegOutput* output,
                         std::function<void(const absl::Status&)> ended)
    : context_(context),
      leg_(leg),
      request_(&leg->request),
      root_(root),
      output_(output),
      ended_(std::move(ended)),
      search_(request_->beam) {
  transfer_.transport = "local";
}

absl::Status AnswerGroup::CheckFits(const WorkerContext& context,
                                    const GenerateRequest& request) {
  const int64_t prompt = static_cast<int64_t>(request.prompt.size());
  const int tokens = static_cast<int>(std::min<int64_t>(
      prompt + request.stop.max_tokens, context.context_length));
  if (request.beam.width == 0) return context.engine->CheckFits(tokens);
  const int64_t shared = prompt / kBlockTokens;
  // Each has a tail of its own, and room for one copy.
  const int64_t tail = BlocksFor(tokens) - shared + 1;
  return context.engine->CheckFits(
      tokens, shared + request.beam.width * tail +
                  context.engine->options().watermark_blocks);
}

absl::Status AnswerGroup::Start() {
  auto prompt = std::make_unique<Sequence>(
      *request_, root_, context_->tokenizer, context_->context_length);
  bool ended = false;
  if (single()) {
    ASSIGN_OR_RETURN(std::vector<TokenDelivery> made,
                     Replay(DeliveredOf(*leg_, 0), *prompt));
    made_ = static_cast<int>(made.size());
    ended = !made.empty() && made.back().finish != FinishReason::kNone;
    samples_.resize(1);
    open_ = 1;
  } else {
    RETURN_IF_ERROR(ReplaySamples(*prompt));
    if (!replayed_.empty()) prompt->scored = prompt->prompt_tokens();
    ended = !replayed_.empty() &&
            std::all_of(replayed_.begin(), replayed_.end(),
                        [](const auto& answer) { return answer.ended(); });
  }
  if (made_ > 0 || !replayed_.empty()) {
    Sometimes<"decode alone went on after tokens that were delivered">();
  }
  if (ended) {
    // The leg that made the last token was lost before it could say that.
    End(absl::OkStatus());
    return absl::OkStatus();
  }
  AdoptKept(*context_, *prompt);
  if (!prompt->blocks.empty()) output_->MarkScheduled();
  const AfterDraw then = single() ? AfterDraw::kGoOn : AfterDraw::kHold;
  ASSIGN_OR_RETURN(prompt_, context_->engine->Add(std::move(prompt), this,
                                                  {then, SequenceId()}));
  if (single()) samples_[0].id = std::exchange(prompt_, SequenceId());
  return absl::OkStatus();
}

absl::Status AnswerGroup::ReplaySamples(const Sequence& prompt) {
  if (leg_->delivered.empty()) return absl::OkStatus();
  for (int sample = 0; sample < request_->answers(); ++sample) {
    ResumedAnswer answer;
    answer.sequence = prompt.Fork(sample);
    ASSIGN_OR_RETURN(answer.made,
                     Replay(DeliveredOf(*leg_, sample), *answer.sequence));
    answer.delivered = static_cast<int>(answer.made.size());
    replayed_.push_back(std::move(answer));
  }
  return absl::OkStatus();
}

void AnswerGroup::Resume(std::vector<ResumedAnswer> answers,
                         std::vector<BlockHold> blocks, int computed,
                         int cached_tokens, const TransferSummary& transfer) {
  cached_tokens_ = cached_tokens;
  transfer_ = transfer;
  // The last one gets the holds themselves.
  for (size_t i = 0; i + 1 < answers.size(); ++i) {
    PlaceOn(Shared(blocks), computed, *answers[i].sequence);
  }
  if (!answers.empty()) {
    PlaceOn(std::move(blocks), computed, *answers.back().sequence);
  }
  for (ResumedAnswer& answer : answers) {
    answer.sequence->cached_tokens = cached_tokens;
    // Prefill delivered what it drew; all but the last is in the KV.
    if (!request_->deferred()) {
      answer.delivered = static_cast<int>(answer.made.size());
    }
  }
  Launch(std::move(answers));
}

void AnswerGroup::Stop() {
  Retire(std::exchange(prompt_, SequenceId()));
  for (Sample& sample : samples_) Retire(std::exchange(sample.id, {}));
  for (Beam& beam : beams_) Retire(beam.id);
  beams_.clear();
}

void AnswerGroup::End(const absl::Status& status) {
  Stop();
  ended_(status);
}

void AnswerGroup::Retire(SequenceId id) {
  if (!id) return;
  std::unique_ptr<Sequence> sequence = context_->engine->Remove(id);
  transfer_.decode_prompt_tokens += sequence->prompt_computed_here;
  if (cached_tokens_ < 0) cached_tokens_ = sequence->cached_tokens;
}

void AnswerGroup::CountBlocks(BlockCensus& census) const {
  for (const Beam& beam : beams_) {
    if (beam.sequence != nullptr) census.Add(beam.sequence->blocks);
  }
}

LegFacts AnswerGroup::Facts() const {
  LegFacts facts;
  facts.usage.prompt_tokens = static_cast<int>(request_->prompt.size());
  facts.usage.cached_tokens = std::max(cached_tokens_, 0);
  facts.usage.completion_tokens = made_;
  facts.transfer = transfer_;
  return facts;
}

void AnswerGroup::OnScheduled() { output_->MarkScheduled(); }

void AnswerGroup::OnScored(PromptLogprobs part) {
  output_->DeliverPrompt(std::move(part));
}

void AnswerGroup::OnFailed(const absl::Status& status) { End(status); }

// --- samples ----------------------------------------------------------------

void AnswerGroup::OnDrawn(SequenceId id, absl::Span<const SampledToken> drawn) {
  if (id == prompt_) {
    Fork(*context_->engine->Find(id), drawn);
    return;
  }
  bool all = true;
  for (Beam& beam : beams_) {
    if (beam.id == id) beam.drawn = drawn[0];
    all &= beam.drawn.has_value();
  }
  if (all) AdvanceBeams();
}

void AnswerGroup::Fork(const Sequence& prompt,
                       absl::Span<const SampledToken> drawn) {
  std::vector<ResumedAnswer> answers;
  for (size_t i = 0; i < drawn.size(); ++i) {
    ResumedAnswer answer;
    if (i < replayed_.size() && replayed_[i].delivered > 0) {
      answer = std::move(replayed_[i]);
      PlaceOn(Shared(prompt.blocks), prompt.computed, *answer.sequence);
      answers.push_back(std::move(answer));
      continue;
    }
    answer.sequence = prompt.Fork(static_cast<int>(i));
    answer.drawn = {drawn[i]};
    if (request_->beam.width == 0) {
      answer.made = {answer.sequence->Append(drawn[i])};
    }
    answers.push_back(std::move(answer));
  }
  replayed_.clear();
  Launch(std::move(answers));
}

void AnswerGroup::Launch(std::vector<ResumedAnswer> answers) {
  SequenceId sibling = prompt_;
  if (request_->beam.width > 0) {
    ResumedAnswer& answer = answers[0];
    stop_tokens_ = answer.sequence->StopTokens();
    Beam beam;
    beam.sequence = std::move(answer.sequence);
    beam.drawn = std::move(answer.drawn[0]);
    beams_.push_back(std::move(beam));
    AdvanceBeams();
    return;
  }
  samples_.resize(answers.size());
  open_ = static_cast<int>(answers.size());
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].ended()) continue;
    auto added = context_->engine->Add(std::move(answers[i].sequence), this,
                                       {AfterDraw::kGoOn, sibling});
    if (!added.ok()) {
      End(added.status());
      return;
    }
    samples_[i].id = *added;
    if (!sibling) sibling = *added;
  }
  Retire(std::exchange(prompt_, SequenceId()));
  for (const ResumedAnswer& answer : answers) {
    made_ += answer.delivered;
    open_ -= answer.ended() && answer.delivered > 0;
  }
  // Whoever delivered such a request's last token ends it: only a wrong prefill
  // worker hands it on.
  if (open_ == 0) {
    End(absl::OkStatus());
    return;
  }
  for (const ResumedAnswer& answer : answers) {
    for (size_t i = answer.delivered; i < answer.made.size(); ++i) {
      Take(answer.made[i]);
    }
  }
}

void AnswerGroup::OnToken(const TokenDelivery& delivery) {
  if (delivery.finish != FinishReason::kNone) {
    Retire(std::exchange(samples_[delivery.sample].id, SequenceId()));
  }
  Take(delivery);
  if (yields_ && samples_[0].id) Yield();
}

void AnswerGroup::Yield() {
  Sometimes<"a draining worker gave a running request up with its KV">();
  std::optional<KeptKv::Prefix> prefix = KeepableOf(
      context_->engine->Remove(std::exchange(samples_[0].id, SequenceId())));
  const int kept = !prefix.has_value() ? 0
                                       : KeepForNextLeg(*context_, request_->id,
                                                        *std::move(prefix));
  End(WithKeptTokens(MakeError(ErrorReason::kDraining,
                               "the worker drains; another attempt goes on "
                               "from here"),
                     kept));
}

void AnswerGroup::Take(const TokenDelivery& delivery) {
  ++made_;
  output_->MarkToken(delivery.index);
  const bool last = delivery.finish != FinishReason::kNone && --open_ == 0;
  if (!request_->deferred()) {
    LegFacts facts = Facts();
    output_->Deliver(delivery, last ? &facts : nullptr);
    if (last) End(absl::OkStatus());
    return;
  }
  KeptAnswer& kept = samples_[delivery.sample].kept;
  kept.tokens.push_back(delivery.token);
  kept.tokens.back().logprobs = ShownOf(delivery.token.logprobs);
  kept.final_text = delivery.final_text;
  kept.finish = delivery.finish;
  kept.score += delivery.token.logprobs.logprob;
  if (!last) return;
  std::vector<KeptAnswer> answers;
  for (Sample& sample : samples_) answers.push_back(std::move(sample.kept));
  DeliverKept(BestByMean(std::move(answers), request_->n));
}

// Less what was asked of the backend for the comparison only.
TokenLogprobs AnswerGroup::ShownOf(const TokenLogprobs& drawn) const {
  TokenLogprobs shown;
  const int asked = request_->sampling.logprobs;
  if (asked < 0) return shown;
  shown.logprob = drawn.logprob;
  const size_t best = std::min<size_t>(drawn.top.size(), asked);
  shown.top.assign(drawn.top.begin(), drawn.top.begin() + best);
  return shown;
}

void AnswerGroup::DeliverKept(std::vector<KeptAnswer> answers) {
  const LegFacts facts = Facts();
  std::vector<TokenFrame> frames = FramesOf(std::move(answers));
  for (TokenFrame& frame : frames) {
    const bool last = &frame == &frames.back();
    output_->Deliver(std::move(frame), last ? &facts : nullptr);
  }
  End(absl::OkStatus());
}

}  // namespace penstock
