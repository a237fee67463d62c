#include "tools/simulator/plan_check.h"

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/generate_request.h"
#include "common/transfer/kv_transport.h"
#include "tools/simulator/sim_model.h"

namespace penstock {
namespace {

constexpr int kMostWorkers = 1000;
constexpr int kMostRouters = 16;
constexpr int kMostBlocks = 1'000'000;
constexpr int kMostRanks = 64;
constexpr double kMostBytes = 1e15;

absl::Status Refuse(absl::string_view field, absl::string_view value,
                    absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, "; it must be ", allowed));
}

// Written so that NaN is refused.
absl::Status InRange(absl::string_view field, double value, double least,
                     double most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return Refuse(field, absl::StrCat(value),
                absl::StrCat("in [", least, ", ", most, "]"));
}

absl::Status InRange(absl::string_view field, absl::Duration value,
                     absl::Duration least, absl::Duration most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return Refuse(field, absl::FormatDuration(value),
                absl::StrCat("from ", absl::FormatDuration(least), " to ",
                             absl::FormatDuration(most)));
}

// A time of the run.
absl::Status IsTime(absl::string_view field, absl::Duration value) {
  return InRange(field, value, absl::ZeroDuration(), absl::Hours(1));
}

absl::Status CheckAmount(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kDelay:
      return InRange("amount", fault.amount, 0, 3600);
    case FaultKind::kSlowLink:
    case FaultKind::kSlow:
      return InRange("amount", fault.amount, 1, 1000);
    case FaultKind::kClockJump:
      return InRange("amount", fault.amount, -1e6, 1e6);
    case FaultKind::kClockDrift:
      return InRange("amount", fault.amount, 0.001, 1000);
    case FaultKind::kKvFull:
      return InRange("amount", fault.amount, 0, kMostBlocks);
    default:  // a probability, or nothing
      return InRange("amount", fault.amount, 0, 1);
  }
}

absl::Status CheckTier(const SimTierOptions& tier) {
  RETURN_IF_ERROR(InRange("tier_pages", tier.pages, 0, kMostBlocks));
  RETURN_IF_ERROR(IsTime("tier_wait", tier.wait));
  RETURN_IF_ERROR(IsTime("tier_each", tier.each));
  RETURN_IF_ERROR(InRange("tier_foresight", tier.foresight, 0, 1000));
  RETURN_IF_ERROR(InRange("tier_missing", tier.missing, 0, 1));
  RETURN_IF_ERROR(InRange("tier_fails", tier.fails, 0, 1));
  RETURN_IF_ERROR(InRange("tier_corrupt", tier.corrupt, 0, 1));
  RETURN_IF_ERROR(InRange("tier_confused", tier.confused, 0, 1));
  return InRange("tier_late", tier.late, 0, 1);
}

}  // namespace

absl::Status CheckSettings(const SimPlan& plan) {
  const SimClusterOptions& cluster = plan.cluster;
  RETURN_IF_ERROR(InRange("routers", cluster.routers, 1, kMostRouters));
  RETURN_IF_ERROR(
      InRange("prefill_workers", cluster.prefill_workers, 0, kMostWorkers));
  RETURN_IF_ERROR(
      InRange("decode_workers", cluster.decode_workers, 0, kMostWorkers));
  RETURN_IF_ERROR(InRange("blocks", cluster.worker.blocks, 1, kMostBlocks));
  RETURN_IF_ERROR(InRange("latency", cluster.latency, absl::ZeroDuration(),
                          absl::Seconds(1)));
  RETURN_IF_ERROR(
      InRange("bytes_per_second", cluster.bytes_per_second, 0, kMostBytes));
  RETURN_IF_ERROR(InRange("page_bytes", static_cast<double>(cluster.page_bytes),
                          0, kMostBytes));
  RETURN_IF_ERROR(InRange("max_attempts", cluster.router.max_attempts, 1, 100));
  RETURN_IF_ERROR(
      InRange("max_running", cluster.router.max_running, 1, 1'000'000));
  RETURN_IF_ERROR(
      InRange("max_queued", cluster.router.max_queued, 0, 1'000'000));
  return IsTime("drain_bound", plan.drain_bound);
}

absl::Status CheckWorker(const SimWorkerOptions& worker, const SimPlan& plan) {
  const std::string& name = worker.key.name;
  if (name.empty() || absl::StartsWith(name, "router")) {
    return Refuse("name", absl::StrCat("\"", name, "\""),
                  "one of its own, not empty nor like a router's");
  }
  for (const SimWorkerOptions& other : plan.cluster.workers) {
    if (other.key.name == name) {
      return Refuse("name", absl::StrCat("\"", name, "\" once more"),
                    "unlike every other worker's");
    }
  }
  if (plan.cluster.workers.size() >= kMostWorkers) {
    return Refuse("worker", "one too many",
                  absl::StrCat("one of ", kMostWorkers, " at most"));
  }
  if (!worker.roles.prefill && !worker.roles.decode) {
    return Refuse("roles", "missing", "prefill, decode or both");
  }
  RETURN_IF_ERROR(InRange("blocks", worker.blocks, 1, kMostBlocks));
  RETURN_IF_ERROR(InRange("max_rows", worker.backend.max_rows, 1, 65536));
  RETURN_IF_ERROR(
      InRange("max_sequences", worker.backend.max_sequences, 1, 65536));
  RETURN_IF_ERROR(InRange("ranks", worker.backend.ranks, 1, kMostRanks));
  RETURN_IF_ERROR(InRange("rank_spread", worker.backend.rank_spread, 0, 100));
  RETURN_IF_ERROR(InRange("cache_events", worker.cache_events, 0, 1 << 20));
  std::set<TransportKind> kinds;
  for (const SimTransportOptions& transport : worker.transports) {
    if (!kinds.insert(transport.kind).second) {
      return Refuse("transports",
                    absl::StrCat(TransportName(transport.kind), " twice"),
                    "a list of kinds, each once");
    }
  }
  RETURN_IF_ERROR(InRange("lease", worker.handoff.lease, absl::Milliseconds(1),
                          absl::Hours(1)));
  RETURN_IF_ERROR(InRange("renew_every", worker.handoff.renew_every,
                          absl::Milliseconds(1) / 10, worker.handoff.lease));
  return CheckTier(worker.tier);
}

absl::Status CheckRequest(const SimRequest& request) {
  const SimWorkerOptions worker;
  RETURN_IF_ERROR(IsTime("at", request.at));
  RETURN_IF_ERROR(
      InRange("prompt", request.prompt, 1, worker.context_length - 1));
  RETURN_IF_ERROR(InRange("prefix", request.prefix, 0, 1'000'000));
  RETURN_IF_ERROR(InRange("shared", request.shared, 0, worker.context_length));
  RETURN_IF_ERROR(
      InRange("max_tokens", request.max_tokens, 0, worker.context_length));
  if (request.cancel_after != absl::InfiniteDuration()) {
    RETURN_IF_ERROR(IsTime("cancel_after", request.cancel_after));
  }
  GenerateRequest asked;
  asked.stop.max_tokens = request.max_tokens;
  FillRequest(request, asked);
  RequestLimits limits;
  limits.context_length = worker.context_length;
  limits.max_prompt_tokens = worker.context_length - 1;
  limits.vocab_size = SimModel::kVocabulary;
  return Validate(asked, limits);
}

absl::Status CheckFault(const Fault& fault, const SimPlan& plan) {
  RETURN_IF_ERROR(IsTime("at", fault.at));
  RETURN_IF_ERROR(IsTime("for", fault.lasts));
  RETURN_IF_ERROR(CheckAmount(fault));
  std::set<std::string> hosts;
  for (std::string& router : RoutersOf(plan.cluster)) {
    hosts.insert(std::move(router));
  }
  for (const SimWorkerOptions& worker : WorkersOf(plan.cluster)) {
    hosts.insert(worker.key.name);
  }
  if (!hosts.contains(fault.host)) {
    return Refuse("host", absl::StrCat("\"", fault.host, "\""),
                  "a router or a worker of the plan");
  }
  if (!fault.peer.empty() && !hosts.contains(fault.peer)) {
    return Refuse("peer", absl::StrCat("\"", fault.peer, "\""),
                  "a router or a worker of the plan, or left out");
  }
  return absl::OkStatus();
}

}  // namespace penstock
