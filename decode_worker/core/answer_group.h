#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/engine/leg_output.h"
#include "common/engine/sequence_state.h"
#include "common/engine/worker_context.h"
#include "decode_worker/core/beam_search.h"

namespace penstock {

// All answers of one request at its decode worker: one sequence each, over one
// set of prompt pages. They fork from a sequence that computed the prompt here
// or from a handoff, share its blocks, and copy the partly filled one when they
// write into it; each ends on its own and gives its blocks back then. Samples
// are delivered as they come. Of best_of the `n` of the highest mean
// log-probability are delivered at the end, best first and renumbered, and of a
// beam search its `n` best; decode keeps them, since that is where their
// log-probabilities are made. Owned by the leg; single-threaded.
class AnswerGroup : public SequenceListener {
 public:
  // `ended` is called once, unless Stop came before: OK when the last answer
  // was delivered, kDraining when it yielded. May be called from inside Start
  // and Resume. All must outlive this.
  AnswerGroup(const WorkerContext* context, const LegRequest* leg,
              BlockHash root, LegOutput* output,
              std::function<void(const absl::Status&)> ended);
  ~AnswerGroup() override { Stop(); }

  // kKvTooSmall: can never fit this worker. Samples can run one after the
  // other; beams have to be there at once.
  static absl::Status CheckFits(const WorkerContext& context,
                                const GenerateRequest& request);

  // Computes the prompt first, and what the client has of each answer; what an
  // earlier leg left here need not be. The errors of EngineLoop::Add and
  // Replay.
  absl::Status Start();
  // Goes on from a handoff: `blocks` hold the first `computed` positions.
  void Resume(std::vector<ResumedAnswer> answers, std::vector<BlockHold> blocks,
              int computed, int cached_tokens, const TransferSummary& transfer);
  // One answer that is delivered as it comes ends with its next token: its KV
  // is kept for the request's next leg. Others are not moved.
  void YieldAtNextToken() { yields_ = single(); }
  // Gives everything back. Idempotent.
  void Stop();

  // Of what the engine does not have.
  void CountBlocks(BlockCensus& census) const;

 private:
  struct Sample {
    SequenceId id;    // none once it has ended
    KeptAnswer kept;  // deferred ones only
  };
  struct Beam {
    SequenceId id;
    std::unique_ptr<Sequence> sequence;  // until the engine has it
    double sum = 0;
    std::vector<FrameToken> tokens;
    std::optional<SampledToken> drawn;
  };
  // A continuation with what its last token gave.
  struct Child {
    std::unique_ptr<Sequence> sequence;
    TokenDelivery delivery;
  };

  void OnScheduled() override;
  void OnScored(PromptLogprobs part) override;
  void OnToken(const TokenDelivery& delivery) override;
  void OnDrawn(SequenceId id, absl::Span<const SampledToken> drawn) override;
  void OnFailed(const absl::Status& status) override;

  bool single() const {
    return request_->answers() == 1 && !request_->deferred();
  }
  absl::Status ReplaySamples(const Sequence& prompt);
  void Fork(const Sequence& prompt, absl::Span<const SampledToken> drawn);
  void Launch(std::vector<ResumedAnswer> answers);
  void Take(const TokenDelivery& delivery);
  void Yield();
  void Retire(SequenceId id);
  void AdvanceBeams();
  BeamSearch::Fate Grow(const BeamSearch::Continuation& next, Child& child);
  void ReplaceBeams(std::vector<Beam> next);
  KeptAnswer KeptOf(const Beam& parent, const TokenDelivery& delivery) const;
  TokenLogprobs ShownOf(const TokenLogprobs& drawn) const;
  void DeliverKept(std::vector<KeptAnswer> answers);
  LegFacts Facts() const;
  void End(const absl::Status& status);

  const WorkerContext* context_;
  const LegRequest* leg_;
  const GenerateRequest* request_;  // the leg's
  BlockHash root_;
  LegOutput* output_;
  std::function<void(const absl::Status&)> ended_;
  SequenceId prompt_;  // the sequence that computes it here
  // By sample, until they fork off the prompt; empty: nothing was delivered.
  std::vector<ResumedAnswer> replayed_;
  std::vector<Sample> samples_;
  std::vector<Beam> beams_;
  BeamSearch search_;
  std::vector<TokenId> stop_tokens_;  // beam search only
  int open_ = 0;                      // samples that have not ended
  int made_ = 0;                      // tokens of all samples
  bool yields_ = false;
  int cached_tokens_ = -1;  // of the prompt; -1: not known yet
  TransferSummary transfer_;
};

}  // namespace penstock
