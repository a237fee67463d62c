// How a SimCluster makes faults happen.

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "tools/simulator/sim_cluster.h"

namespace penstock {
namespace {

double Most(const std::map<int64_t, double>& factors) {
  double most = 1;
  for (const auto& [id, factor] : factors) most = std::max(most, factor);
  return most;
}

}  // namespace

void SimCluster::Inject(const Fault& fault) {
  CHECK(hosts_.contains(fault.host)) << fault.host;
  CHECK(fault.peer.empty() || hosts_.contains(fault.peer)) << fault.peer;
  timers_.Schedule(std::max(clock_.Now(), start_ + fault.at),
                   [this, fault] { Begin(fault); });
}

void SimCluster::WhenOver(const Fault& fault, std::function<void()> undo) {
  if (fault.lasts <= absl::ZeroDuration()) return;
  SimHost* host = hosts_.at(fault.host).get();
  After(fault.lasts, [host, life = host->life(), undo = std::move(undo)] {
    if (host->alive() && host->life() == life) undo();
  });
}

void SimCluster::Note(const Fault& fault) {
  Log(FormatFault(fault));
  ++faults_[fault.kind];
}

void SimCluster::Begin(const Fault& fault) {
  SimHost& host = *hosts_.at(fault.host);
  if (IsOnPath(fault.kind)) {
    Note(fault);
    BeginOnPath(fault);
    return;
  }
  if (!host.alive()) return;
  const bool is_router = router_alive(fault.host);
  switch (fault.kind) {
    case FaultKind::kKill:
      Note(fault);
      Kill(fault.host);
      if (fault.lasts > absl::ZeroDuration()) {
        After(fault.lasts, [this, name = fault.host] { Restart(name); });
      }
      return;
    case FaultKind::kFreeze:
      Note(fault);
      Freeze(fault);
      return;
    case FaultKind::kClockJump:
      Note(fault);
      host.clock().Jump(absl::Seconds(fault.amount));
      host.Rearm();
      return;
    case FaultKind::kClockDrift:
      Note(fault);
      Drift(fault);
      return;
    case FaultKind::kDrain:
      Note(fault);
      host.Handle([this, is_router, name = fault.host] {
        if (is_router) {
          router(name).Drain([] {});
        } else {
          workers_.at(name).worker->core().BeginDrain();
          workers_.at(name).Report();
        }
      });
      return;
    default:
      break;
  }
  if (is_router) return;  // it has no such thing
  Note(fault);
  BeginOnWorker(fault, workers_.at(fault.host));
}

void SimCluster::BeginOnPath(const Fault& fault) {
  const SimPaths::RuleId rule = network_->paths().Add(fault);
  network_->Refresh();
  if (fault.lasts <= absl::ZeroDuration()) return;
  After(fault.lasts, [this, rule] {
    network_->paths().Remove(rule);
    network_->Refresh();
  });
}

void SimCluster::Freeze(const Fault& fault) {
  SimHost& host = *hosts_.at(fault.host);
  host.Freeze();
  network_->Refresh();
  WhenOver(fault, [this, &host] {
    host.Wake();
    network_->Refresh();
  });
}

// The machine's, whatever runs there.
void SimCluster::Drift(const Fault& fault) {
  std::map<int64_t, double>& drifts = drifts_[fault.host];
  const int64_t id = next_effect_++;
  auto change = [&host = *hosts_.at(fault.host), &drifts] {
    // The last that began and is not over.
    host.clock().SetRate(drifts.empty() ? 1 : drifts.rbegin()->second);
    host.Rearm();
  };
  drifts[id] = fault.amount;
  change();
  if (fault.lasts <= absl::ZeroDuration()) return;
  After(fault.lasts, [&drifts, id, change] {
    drifts.erase(id);
    change();
  });
}

void SimCluster::BeginOnWorker(const Fault& fault, Process& process) {
  SimWorker* worker = process.worker.get();
  const int64_t id = next_effect_++;
  switch (fault.kind) {
    case FaultKind::kSlow:
      process.slow[id] = fault.amount;
      worker->backend().set_slowness(Most(process.slow));
      WhenOver(fault, [&process, worker, id] {
        process.slow.erase(id);
        worker->backend().set_slowness(Most(process.slow));
      });
      return;
    case FaultKind::kStepFails:
      worker->backend().FailNextStep(absl::InternalError("the step failed"));
      return;
    case FaultKind::kKvFull:
      worker->TakeBlocks(id, static_cast<int>(fault.amount));
      WhenOver(fault, [this, worker, id, name = fault.host] {
        worker->GiveBlocksBack(id);
        hosts_.at(name)->Handle([] {});
      });
      return;
    case FaultKind::kNoHeartbeats:
      ++process.mutes;
      process.SetMuted(true);
      WhenOver(fault, [&process] { process.SetMuted(--process.mutes > 0); });
      return;
    default:
      CHECK(false) << FormatFault(fault) << " is no worker's";
  }
}

}  // namespace penstock
