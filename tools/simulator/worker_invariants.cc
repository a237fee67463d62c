// What Invariants looks at on workers and on the way between them.

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/simulator/invariants.h"

namespace penstock {
namespace {

// Checks that ask every holder of a worker: at one event of so many.
constexpr uint64_t kCountEvery = 8;

// A page that is still given for what is written there.
bool Awaits(const BlockPool& pool, BlockRef block) {
  if (!pool.IsLive(block)) return false;
  const BlockState state = pool.StateOf(block.index);
  return state == BlockState::kInTransfer || state == BlockState::kQuarantined;
}

}  // namespace

std::optional<Violation> Invariants::CheckWorkers() {
  const std::vector<SimWorker*> workers = cluster_->Living();
  for (SimWorker* worker : workers) {
    const BlockPool& pool = worker->core().pool();
    if (pool.counts().total() != pool.total()) {
      return Violation{
          "pages add up",
          absl::StrCat(worker->key().name, " counts ", pool.counts().total(),
                       " of ", pool.total(), " pages")};
    }
    const int64_t rows = worker->backend().rows_computed();
    int64_t& before = rows_[worker->key()];
    if (rows == before) continue;
    rows_computed_ += rows - before;
    before = rows;
    last_rows_at_ = cluster_->now();
  }
  if (workers.empty()) return std::nullopt;
  if (auto broken = CheckOwners()) return broken;
  return CheckWorker(*workers[Draw() % workers.size()]);
}

std::optional<Violation> Invariants::CheckWorker(SimWorker& worker) const {
  const std::string& name = worker.key().name;
  const BlockPool& pool = worker.core().pool();
  BlockCounts counted;
  for (BlockIndex block = 0; block < pool.total(); ++block) {
    switch (pool.StateOf(block)) {
      case BlockState::kQuarantined:
        ++counted.quarantined;
        break;
      case BlockState::kInTransfer:
        ++counted.in_transfer;
        break;
      case BlockState::kActive:
        ++counted.active;
        break;
      case BlockState::kCached:
        ++counted.cached;
        break;
      case BlockState::kFree:
        ++counted.free;
        break;
    }
  }
  const BlockCounts counts = pool.counts();
  if (counted.quarantined != counts.quarantined ||
      counted.in_transfer != counts.in_transfer ||
      counted.active != counts.active || counted.cached != counts.cached ||
      counted.free != counts.free) {
    return Violation{"pages add up",
                     absl::StrCat(name, "'s counts are not its pages'")};
  }
  for (BlockIndex block : worker.backend().blocks_in_flight()) {
    const BlockState state = pool.StateOf(block);
    if (state != BlockState::kFree && state != BlockState::kCached) continue;
    return Violation{"no page is let go under a step",
                     absl::StrCat("a step of ", name, " uses page ", block,
                                  ", which nobody holds")};
  }
  if (Sampled(kCountEvery)) {
    if (auto broken = CheckTables(worker)) return broken;
  }
  const SimWorkerOptions& limits = worker.options();
  const WorkerLoad load = worker.core().Load();
  const int bound =
      limits.engine.max_waiting + 2 * limits.handoff.max_transfers;
  if (load.queued_requests > bound) {
    return Violation{
        "queues are bounded",
        absl::StrCat(name, " has ", load.queued_requests, " requests waiting")};
  }
  return std::nullopt;
}

std::optional<Violation> Invariants::CheckTables(
    const SimWorker& worker) const {
  const std::string& name = worker.key().name;
  if (absl::Status held = worker.CheckBlocks(); !held.ok()) {
    return Violation{"pages are held by somebody",
                     absl::StrCat(name, ": ", held.message())};
  }
  if (absl::Status bounds = worker.core().CheckBounds(); !bounds.ok()) {
    return Violation{"tables are bounded",
                     absl::StrCat(name, ": ", bounds.message())};
  }
  return std::nullopt;
}

std::optional<Violation> Invariants::CheckOwners() const {
  if (!Sampled(kCountEvery)) return std::nullopt;
  std::map<TransferId, std::string> owners;
  for (SimWorker* worker : cluster_->Living()) {
    const std::string& name = worker->key().name;
    for (TransferId id : worker->core().Generating()) {
      auto [at, added] = owners.emplace(id, name);
      if (added) continue;
      return Violation{
          "an answer is made in one place",
          absl::StrCat("attempt ", id.attempt.value(), " of request ",
                       id.request.value(), " goes on at ", at->second,
                       " and at ", name)};
    }
  }
  return std::nullopt;
}

void Invariants::OnLand(const WorkerKey& to, TransferId transfer,
                        BlockRef block) {
  SimWorker* worker = cluster_->worker(to.name);
  if (worker == nullptr || worker->key() != to || landed_.has_value()) return;
  if (Awaits(worker->core().pool(), block)) return;
  landed_ =
      Violation{"no page is reused under a write",
                absl::StrCat("a write of request ", transfer.request.value(),
                             " landed in page ", block.index, " of ", to.name,
                             ", which had been let go")};
}

std::optional<Violation> Invariants::CheckPagesInFlight() const {
  SimNetwork& network = cluster_->network();
  for (const auto& [number, page] : network.pages_in_flight()) {
    if (page.validated || !network.MayLand(page)) continue;
    const BlockPool& pool = cluster_->worker(page.to.name)->core().pool();
    if (Awaits(pool, page.block)) continue;
    return Violation{
        "no page is reused under a write",
        absl::StrCat("a write of request ", page.transfer.request.value(),
                     " may land in page ", page.block.index, " of ",
                     page.to.name, ", which had been let go")};
  }
  return std::nullopt;
}

std::string Invariants::Workers() const {
  std::string text;
  for (SimWorker* worker : cluster_->Living()) {
    const BlockCounts blocks = worker->core().pool().counts();
    const WorkerLoad load = worker->core().Load();
    absl::StrAppend(&text, "; ", worker->key().name, " blocks ", blocks.active,
                    " active ", blocks.in_transfer, " in transfer ",
                    blocks.quarantined, " quarantined ", blocks.cached,
                    " cached ", blocks.free, " free, requests ",
                    load.active_requests, " running ", load.queued_requests,
                    " waiting");
  }
  return text;
}

}  // namespace penstock
