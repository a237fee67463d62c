#include "router/core/least_time_policy.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/sometimes.h"
#include "common/model/kv_layout.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

bool CanHandOff(const WorkerInfo& prefill, const WorkerInfo& decode) {
  return prefill.layout == decode.layout && prefill.content == decode.content &&
         prefill.numerics == decode.numerics &&
         std::any_of(prefill.transports.begin(), prefill.transports.end(),
                     [&](TransportKind kind) {
                       return std::find(decode.transports.begin(),
                                        decode.transports.end(),
                                        kind) != decode.transports.end();
                     });
}

bool Avoided(const RequestFacts& request, const WorkerInfo& info) {
  return std::find(request.avoid.begin(), request.avoid.end(), info.key.name) !=
         request.avoid.end();
}

// How a worker's memory pressure stretches work: 0 when empty, without bound
// near full.
double Pressure(int blocks, int total_blocks) {
  if (total_blocks <= 0) return 0;
  double used = std::min(0.99, static_cast<double>(blocks) / total_blocks);
  return used / (1 - used);
}

// One of the candidates that `eligible` accepts and whose time is least.
template <typename C, typename Eligible>
const C* PickLeast(const std::vector<C>& candidates, Random& random,
                   Eligible eligible) {
  std::vector<const C*> best;
  for (const C& candidate : candidates) {
    if (!eligible(candidate)) continue;
    if (!best.empty() && candidate.time > best[0]->time) continue;
    if (!best.empty() && candidate.time < best[0]->time) best.clear();
    best.push_back(&candidate);
  }
  return best.empty() ? nullptr : best[random.Below(best.size())];
}

}  // namespace

absl::StatusOr<Placement> LeastTimePolicy::Place(const RequestFacts& request,
                                                 const ClusterView& view,
                                                 Random& random) const {
  CHECK(request.prompt_tokens > 0 && request.max_tokens >= 0);
  const std::vector<Holding> holdings = Holdings(request, view);
  Pool decodes = DecodePool(request, view, holdings);
  if (decodes.ready == 0) {
    return MakeError(ErrorReason::kNoWorkers,
                     "no decode worker is ready for this request");
  }
  if (decodes.large_enough == 0) {
    return MakeError(
        ErrorReason::kKvTooSmall,
        absl::StrCat("a prompt of ", request.prompt_tokens, " tokens and ",
                     request.max_tokens,
                     " more to generate fit no decode worker's KV memory: "
                     "lower max_tokens, shorten the prompt or give the workers "
                     "more (--kv-memory)"),
        "max_tokens");
  }
  const absl::Status full =
      MakeError(ErrorReason::kQueueFull, "every worker is full", "",
                options_.retry_after);
  if (decodes.open.empty()) return full;
  Pool prefills;
  if (!request.decode_alone) prefills = PrefillPool(request, view, holdings);
  // The prefill pool is in order of time: the first that fits is the best.
  auto best_prefill = [&](const Candidate& decode) -> const Candidate* {
    if (decode.uncached_tokens < options_.local_prefill_tokens) return nullptr;
    auto it = std::find_if(
        prefills.open.begin(), prefills.open.end(), [&](const Candidate& p) {
          return CanHandOff(p.worker->info, decode.worker->info);
        });
    if (it == prefills.open.end()) return nullptr;
    // Of what decode keeps, the rest may be sooner computed there.
    const bool alone =
        decode.keeps && PromptTime(decode, nullptr) <= PromptTime(decode, &*it);
    return alone ? nullptr : &*it;
  };
  for (Candidate& decode : decodes.open) {
    decode.time += PromptTime(decode, best_prefill(decode));
  }
  const Candidate& decode =
      *PickLeast(decodes.open, random, [](const Candidate&) { return true; });
  const Candidate* prefill = nullptr;
  if (best_prefill(decode) != nullptr) {
    prefill = PickLeast(prefills.open, random, [&](const Candidate& p) {
      return CanHandOff(p.worker->info, decode.worker->info);
    });
  } else if (decode.uncached_tokens >= options_.local_prefill_tokens &&
             !decode.keeps && prefills.large_enough > 0 &&
             prefills.open.empty()) {
    // Waiting for a place is better than stopping every decode for a prompt.
    return full;
  }

  Placement placement;
  const int steps = Steps(request);
  LegPlacement& on_decode = placement.decode;
  on_decode.worker = decode.worker->info.key;
  on_decode.cached_tokens = decode.cached_tokens;
  const int blocks = BlocksFor(request.prompt_tokens + steps);
  // Each answer beyond the first shares the prompt's full blocks.
  const int own_blocks = blocks - request.prompt_tokens / kBlockTokens;
  on_decode.load = {
      cost_.DecodeShare(steps, request.prompt_tokens) * request.answers,
      request.answers, blocks + (request.answers - 1) * own_blocks};
  if (prefill == nullptr) {
    on_decode.load.time +=
        cost_.Prefill(decode.uncached_tokens, decode.cached_tokens);
    return placement;
  }
  placement.prefill = LegPlacement{
      prefill->worker->info.key,
      prefill->cached_tokens,
      {cost_.Prefill(prefill->uncached_tokens, prefill->cached_tokens), 1,
       static_cast<int>(BlocksFor(request.prompt_tokens))}};
  return placement;
}

std::vector<LeastTimePolicy::Holding> LeastTimePolicy::Holdings(
    const RequestFacts& request, const ClusterView& view) {
  const std::vector<int> blocks = view.CachedBlocks(request.chain);
  std::vector<Holding> holdings(view.workers.size());
  for (size_t i = 0; i < holdings.size(); ++i) {
    Holding& holding = holdings[i];
    for (const KeptPrefix& kept : request.kept) {
      if (kept.worker == view.workers[i].info.key) holding.kept = kept.tokens;
    }
    // The last token is always computed.
    holding.cached = std::min(std::max(blocks[i] * kBlockTokens, holding.kept),
                              request.prompt_tokens - 1);
  }
  return holdings;
}

template <typename Admits>
LeastTimePolicy::Pool LeastTimePolicy::PoolOf(
    Admits admits, int generated, int beams, const RequestFacts& request,
    const ClusterView& view, absl::Span<const Holding> holdings) const {
  bool any_sound = false;
  for (size_t i = 0; i < view.workers.size(); ++i) {
    any_sound |= !view.workers[i].suspect && admits(i);
  }
  Pool pool;
  for (size_t i = 0; i < view.workers.size(); ++i) {
    const WorkerView& worker = view.workers[i];
    if (!admits(i) || (worker.suspect && any_sound)) continue;
    ++pool.ready;
    // A worker stops at its context, whatever was asked.
    int64_t tokens = int64_t{request.prompt_tokens} + generated;
    if (worker.info.context_length > 0) {
      tokens = std::min<int64_t>(tokens, worker.info.context_length);
    }
    int64_t blocks = BlocksFor(tokens);
    if (beams > 1) {
      // They share the prompt's full blocks.
      const int64_t shared = request.prompt_tokens / kBlockTokens;
      blocks = shared + beams * (blocks - shared);
    }
    if (blocks > worker.info.total_blocks) continue;
    ++pool.large_enough;
    const int64_t room =
        int64_t{worker.info.max_sequences} * options_.requests_per_sequence;
    if (room > 0 && worker.PredictedRequests() >= room &&
        holdings[i].kept == 0) {
      continue;
    }
    Candidate candidate;
    candidate.worker = &worker;
    candidate.cached_tokens = holdings[i].cached;
    candidate.uncached_tokens = request.prompt_tokens - candidate.cached_tokens;
    candidate.keeps = holdings[i].kept > 0;
    candidate.time = WorkAhead(worker);
    pool.open.push_back(candidate);
  }
  return pool;
}

LeastTimePolicy::Pool LeastTimePolicy::DecodePool(
    const RequestFacts& request, const ClusterView& view,
    absl::Span<const Holding> holdings) const {
  auto decodes = [&](size_t i) {
    const WorkerInfo& info = view.workers[i].info;
    return info.roles.decode && !Avoided(request, info);
  };
  const int beams = request.beams ? request.answers : 1;
  Pool pool =
      PoolOf([&](size_t i) { return decodes(i) && view.workers[i].ready(); },
             request.max_tokens, beams, request, view, holdings);
  if (pool.open.empty()) {
    Pool keepers = PoolOf(
        [&](size_t i) {
          return decodes(i) && holdings[i].kept > 0 && view.workers[i].drains();
        },
        request.max_tokens, beams, request, view, holdings);
    if (!keepers.open.empty()) {
      Sometimes<"a draining worker took back what it keeps">();
      pool = std::move(keepers);
    }
  }
  for (Candidate& candidate : pool.open) {
    candidate.time += DecodeTime(request, *candidate.worker);
  }
  return pool;
}

LeastTimePolicy::Pool LeastTimePolicy::PrefillPool(
    const RequestFacts& request, const ClusterView& view,
    absl::Span<const Holding> holdings) const {
  auto admits = [&](size_t i) {
    const WorkerView& worker = view.workers[i];
    if (holdings[i].kept > 0 && (worker.ready() || worker.drains())) {
      return true;
    }
    return worker.info.roles.prefill && worker.ready() &&
           !Avoided(request, worker.info);
  };
  Pool pool = PoolOf(admits, 0, 1, request, view, holdings);
  for (Candidate& candidate : pool.open) {
    candidate.time +=
        cost_.Prefill(candidate.uncached_tokens, candidate.cached_tokens);
  }
  std::stable_sort(
      pool.open.begin(), pool.open.end(),
      [](const Candidate& a, const Candidate& b) { return a.time < b.time; });
  return pool;
}

int LeastTimePolicy::Steps(const RequestFacts& request) const {
  return std::min(request.max_tokens, options_.expected_tokens);
}

absl::Duration LeastTimePolicy::WorkAhead(const WorkerView& worker) const {
  const WorkerLoad& load = worker.reported;
  absl::Duration reported = cost_.Prefill(load.queued_tokens, 0);
  if (worker.info.roles.decode) {
    // Running requests are half done on average.
    reported += (load.active_requests + load.queued_requests) *
                cost_.DecodeShare(options_.expected_tokens / 2, 0);
  }
  return worker.PredictedTime(reported);
}

absl::Duration LeastTimePolicy::DecodeTime(const RequestFacts& request,
                                           const WorkerView& worker) const {
  return cost_.DecodeShare(Steps(request), request.prompt_tokens) *
         (1 + Pressure(worker.PredictedBlocks(), worker.info.total_blocks));
}

absl::Duration LeastTimePolicy::PromptTime(const Candidate& decode,
                                           const Candidate* prefill) const {
  if (prefill == nullptr) {
    return cost_.Prefill(decode.uncached_tokens, decode.cached_tokens);
  }
  return prefill->time + cost_.Transfer(int64_t{decode.uncached_tokens} *
                                        options_.kv_bytes_per_token);
}

}  // namespace penstock
