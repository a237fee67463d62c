#include "common/engine/resume.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/sometimes.h"
#include "common/model/kv_layout.h"

namespace penstock {
namespace {

absl::Status CheckAnswer(const LegRequest& leg, size_t sample,
                         const RequestLimits& limits) {
  const std::vector<DeliveredToken>& tokens = leg.delivered[sample];
  const size_t most = std::min<size_t>(
      std::max(leg.request.stop.max_tokens, 1),
      std::max<int64_t>(0,
                        int64_t{limits.context_length} -
                            static_cast<int64_t>(leg.request.prompt.size())));
  if (tokens.size() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("delivered[", sample, "] has ", tokens.size(),
                     " tokens; the request can have at most ", most));
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].token < 0 || tokens[i].token >= limits.vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("delivered[", sample, "][", i, "] is ", tokens[i].token,
                       "; it must be in [0, ", limits.vocab_size, ")"));
    }
    if (!std::isfinite(tokens[i].mirostat_mu)) {
      return absl::InvalidArgumentError(
          absl::StrCat("delivered[", sample, "][", i,
                       "].mirostat_mu is not a finite number"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckDelivered(const LegRequest& leg,
                            const RequestLimits& limits) {
  const GenerateRequest& request = leg.request;
  if (static_cast<int64_t>(leg.delivered.size()) > std::max(request.n, 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("delivered has ", leg.delivered.size(),
                     " answers; the request asks for ", request.n));
  }
  for (size_t sample = 0; sample < leg.delivered.size(); ++sample) {
    if (leg.delivered[sample].empty()) continue;
    if (request.deferred()) {
      return absl::InvalidArgumentError(
          "delivered: answers that are given back at the end are not resumed");
    }
    if (request.n > 1 && !leg.partner.worker.empty()) {
      return absl::InvalidArgumentError(
          "delivered: several answers are resumed by a decode leg alone");
    }
    absl::Status status = CheckAnswer(leg, sample, limits);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Span<const DeliveredToken> DeliveredOf(const LegRequest& leg,
                                             int sample) {
  if (sample >= static_cast<int>(leg.delivered.size())) return {};
  return leg.delivered[sample];
}

AnswerDraws DrawsOf(absl::Span<const DeliveredToken> delivered) {
  AnswerDraws draws;
  for (const DeliveredToken& token : delivered) {
    draws.push_back({token.token, {}, token.mirostat_mu});
  }
  return draws;
}

absl::StatusOr<std::vector<TokenDelivery>> Replay(
    absl::Span<const DeliveredToken> delivered, Sequence& sequence) {
  std::vector<TokenDelivery> made;
  for (const DeliveredToken& token : delivered) {
    if (!made.empty() && made.back().finish != FinishReason::kNone) {
      return absl::InvalidArgumentError(
          "delivered: an answer goes on after its end");
    }
    made.push_back(sequence.Append({token.token, {}, token.mirostat_mu}));
  }
  // The prompt's log-probabilities came before the first token.
  if (!delivered.empty()) sequence.scored = sequence.prompt_tokens();
  return made;
}

void AdoptKept(const WorkerContext& context, Sequence& sequence) {
  KeptKv::Prefix kept =
      context.kept->Take(sequence.request().id, sequence.tokens());
  if (kept.computed == 0) return;
  const bool to_score = sequence.request().prompt_logprobs >= 0 &&
                        sequence.scored < sequence.prompt_tokens();
  if (to_score) return;
  int usable = kept.computed;
  if (usable == sequence.length()) {
    // The last token's logits are wanted. Its row is computed again, but not
    // in a full block, which the prefix cache may have shown to others.
    usable = usable % kBlockTokens == 0 ? usable - kBlockTokens : usable - 1;
  }
  const int cached = context.cache
                         ->Look(sequence.root(), sequence.tokens(),
                                (sequence.length() - 1) / kBlockTokens)
                         .blocks *
                     kBlockTokens;
  if (usable <= cached) return;
  Sometimes<"a leg went on from kept KV">();
  kept.blocks.erase(kept.blocks.begin() + BlocksFor(usable), kept.blocks.end());
  sequence.blocks = std::move(kept.blocks);
  sequence.computed = usable;
  sequence.looked_up = true;
}

bool WorthKeeping(absl::StatusCode code) {
  return code != absl::StatusCode::kOk &&
         code != absl::StatusCode::kCancelled &&
         code != absl::StatusCode::kDeadlineExceeded &&
         code != absl::StatusCode::kInvalidArgument;
}

std::optional<KeptKv::Prefix> KeepableOf(std::unique_ptr<Sequence> sequence) {
  if (sequence == nullptr || sequence->computed == 0) return std::nullopt;
  KeptKv::Prefix prefix;
  prefix.computed = sequence->computed;
  prefix.tokens.assign(sequence->tokens().begin(),
                       sequence->tokens().begin() + prefix.computed);
  prefix.blocks = std::move(sequence->blocks);
  prefix.blocks.erase(prefix.blocks.begin() + BlocksFor(prefix.computed),
                      prefix.blocks.end());
  return prefix;
}

int KeepForNextLeg(const WorkerContext& context, RequestId request,
                   KeptKv::Prefix prefix) {
  const int kept = context.kept->Look(request, prefix.tokens);
  if (kept >= prefix.computed) return kept;
  return context.kept->Keep(request, std::move(prefix));
}

}  // namespace penstock
