// How a SimCluster makes faults happen.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "tools/simulator/sim_cluster.h"

namespace penstock {

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
  ++faults_;
}

void SimCluster::Begin(const Fault& fault) {
  SimHost& host = *hosts_.at(fault.host);
  if (IsOnPath(fault.kind)) {
    Note(fault);
    BeginOnPath(fault);
    return;
  }
  if (!host.alive()) return;
  const bool is_router =
      router_ != nullptr && fault.host == router_->key().name;
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
      host.clock().SetRate(fault.amount);
      host.Rearm();
      WhenOver(fault, [&host] {
        host.clock().SetRate(1);
        host.Rearm();
      });
      return;
    case FaultKind::kDrain:
      Note(fault);
      host.Handle([this, is_router, name = fault.host] {
        if (is_router) {
          router_->core().Drain([] {});
        } else {
          workers_.at(name).worker->core().BeginDrain();
          workers_.at(name).link->Report();
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

void SimCluster::BeginOnWorker(const Fault& fault, Process& process) {
  SimWorker* worker = process.worker.get();
  switch (fault.kind) {
    case FaultKind::kSlow:
      worker->backend().set_slowness(fault.amount);
      WhenOver(fault, [worker] { worker->backend().set_slowness(1); });
      return;
    case FaultKind::kStepFails:
      worker->backend().FailNextStep(absl::InternalError("the step failed"));
      return;
    case FaultKind::kKvFull:
      worker->TakeBlocks(static_cast<int>(fault.amount));
      WhenOver(fault, [this, worker, name = fault.host] {
        worker->GiveBlocksBack();
        hosts_.at(name)->Handle([] {});
      });
      return;
    case FaultKind::kNoHeartbeats:
      process.link->set_muted(true);
      WhenOver(fault, [link = process.link.get()] { link->set_muted(false); });
      return;
    default:
      CHECK(false) << FormatFault(fault) << " is no worker's";
  }
}

}  // namespace penstock
