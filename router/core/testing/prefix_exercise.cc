#include "router/core/testing/prefix_exercise.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace penstock {
namespace {

constexpr size_t kMaxBlocks = 6000;

std::string Say(absl::string_view what, absl::StatusCode code) {
  return absl::StrCat(what, " ", absl::StatusCodeToString(code));
}

absl::string_view NameOf(const CacheEvent& event) {
  if (std::holds_alternative<BlocksStored>(event.change)) return "stored";
  if (std::holds_alternative<BlocksRemoved>(event.change)) return "removed";
  return "cleared";
}

}  // namespace

PrefixExercise::PrefixExercise(uint64_t seed) : random_(seed) {}

std::vector<std::string> PrefixExercise::Outcomes() {
  return {"worker added",
          "worker removed",
          "predicted",
          "time passed",
          "withdrawn",
          "stored OK",
          "stored OUT_OF_RANGE",
          "stored NOT_FOUND",
          "stored FAILED_PRECONDITION",
          "removed OK",
          "removed OUT_OF_RANGE",
          "cleared OK",
          "replaced OK",
          "replaced NOT_FOUND",
          "replaced INVALID_ARGUMENT"};
}

void PrefixExercise::StartEpisode() {
  ++episodes_;
  left_ = kEpisode;
  const bool many = random_.Below(3) == 0;
  most_workers_ = many ? 100 : 2 + random_.Below(8);
  short_of_memory_ = random_.Below(4) == 0;
  const bool long_chains = random_.Below(6) == 0;
  // What takes the oracle long is asked less often.
  compare_every_ = (many ? 8 : 1) * (long_chains ? 8 : 1);
  options_.max_bytes = short_of_memory_ ? 600'000 : size_t{1} << 30;
  options_.predicted.lifetime = absl::Seconds(5);
  forest_ = std::make_unique<PrefixForest>(
      random_, short_of_memory_ ? 400 : 5 + random_.Below(60),
      long_chains ? 100 : 12, long_chains ? 2500 : 60);
  index_ = std::make_unique<PrefixIndex>(options_);
  oracle_ = std::make_unique<PrefixOracle>(options_.predicted.lifetime);
}

std::string PrefixExercise::Next() {
  if (left_ == 0) StartEpisode();
  --left_;
  std::string outcome = Operate();
  if (left_ % compare_every_ == 0) Compare();
  if (left_ % 1000 == 0) {
    index_->CheckStructure();
    if (index_->workers() > 0) CompareDump(RandomWorker());
  }
  return outcome;
}

std::string PrefixExercise::Operate() {
  const uint64_t choice = random_.Below(1000);
  if (index_->workers() < 2 ||
      (choice < 40 && index_->workers() < most_workers_)) {
    return AddWorker();
  }
  if (choice < 45) {
    const WorkerSlot slot = RandomWorker();
    index_->RemoveWorker(slot);
    oracle_->RemoveWorker(slot);
    return "worker removed";
  }
  // Now and then a worker that is not there.
  const WorkerSlot slot =
      random_.Below(500) == 0 ? index_->slot_limit() : RandomWorker();
  if (choice < 60) return Replace(slot);
  if (choice < 140) return Predict(slot);
  if (choice < 160) return Withdraw(slot);
  if (choice < 200) {
    clock_.Advance(absl::Milliseconds(random_.Below(2000)));
    index_->ExpirePredictions(clock_.Now());
    return "time passed";
  }
  return Apply(slot);
}

std::string PrefixExercise::AddWorker() {
  const size_t max_blocks = random_.Below(5) == 0 ? 50 : kMaxBlocks;
  const WorkerSlot slot = index_->AddWorker(max_blocks);
  const std::vector<WorkerSlot> known = oracle_->Workers();
  CHECK(std::find(known.begin(), known.end(), slot) == known.end())
      << "slot " << slot << " is taken";
  oracle_->AddWorker(slot, max_blocks);
  return "worker added";
}

std::string PrefixExercise::Apply(WorkerSlot slot) {
  const CacheEvent event = RandomEvent(slot);
  const absl::StatusCode expected = oracle_->Apply(slot, event);
  // An index that had to forget cannot know what is wrong.
  if (!short_of_memory_ || expected == absl::StatusCode::kOk) {
    const absl::Status status = index_->Apply(slot, event);
    CHECK(status.code() == expected)
        << status << " instead of " << absl::StatusCodeToString(expected);
  }
  return Say(NameOf(event), expected);
}

CacheEvent PrefixExercise::RandomEvent(WorkerSlot slot) {
  CacheEvent event;
  const std::vector<WorkerSlot> known = oracle_->Workers();
  const bool there = std::find(known.begin(), known.end(), slot) != known.end();
  event.sequence = there ? oracle_->ExpectedSequence(slot) : 1;
  const uint64_t luck = random_.Below(40);
  if (luck == 0) event.sequence += 1 + random_.Below(5);
  if (luck == 1) event.sequence -= random_.Below(event.sequence);
  const uint64_t choice = random_.Below(100);
  if (choice == 0) {
    event.change = CacheCleared();
  } else if (choice < 35 && there) {
    event.change = RandomRemoval(slot);
  } else {
    const std::vector<BlockHash> path =
        forest_->PathTo(forest_->RandomNode(random_));
    // From where the worker's part of it ends, mostly.
    size_t from = there ? static_cast<size_t>(
                              oracle_->DepthOf(slot, path, clock_.Now()).said)
                        : 0;
    if (random_.Below(5) == 0) from = random_.Below(path.size());
    from = std::min(from, path.size() - 1);
    const size_t count = 1 + random_.Below(path.size() - from);
    BlocksStored stored;
    if (from > 0) stored.parent = path[from - 1];
    stored.hashes.assign(path.begin() + from, path.begin() + from + count);
    if (random_.Below(200) == 0) stored.hashes.back() = BlockHash();
    event.change = std::move(stored);
  }
  return event;
}

BlocksRemoved PrefixExercise::RandomRemoval(WorkerSlot slot) {
  BlocksRemoved removed;
  const std::vector<BlockHash> path =
      forest_->PathTo(forest_->RandomNode(random_));
  const auto held =
      static_cast<size_t>(oracle_->DepthOf(slot, path, clock_.Now()).said);
  const uint64_t choice = random_.Below(10);
  if (held == 0 || choice < 2) {
    removed.hashes = {path[random_.Below(path.size())]};
  } else if (choice < 3) {
    removed.hashes.assign(path.begin(), path.begin() + held);
  } else {
    // As a cache evicts: from the end.
    removed.hashes.assign(path.rend() - held, path.rend());
    removed.hashes.resize(1 + random_.Below(held));
  }
  return removed;
}

std::string PrefixExercise::Replace(WorkerSlot slot) {
  CacheSnapshot snapshot;
  if (random_.Below(2) == 0 && slot < index_->slot_limit()) {
    snapshot = index_->Dump(RandomWorker());
  }
  while (random_.Below(3) != 0) {
    snapshot.chains.push_back(
        {BlockHash(), forest_->PathTo(forest_->RandomNode(random_))});
  }
  snapshot.sequence = random_.Below(1000);
  if (random_.Below(20) == 0) {
    snapshot.chains.push_back({BlockHash(), {BlockHash()}});
  }
  const absl::StatusCode expected = oracle_->Replace(slot, snapshot);
  const absl::Status status = index_->Replace(slot, snapshot);
  CHECK(status.code() == expected)
      << status << " instead of " << absl::StatusCodeToString(expected);
  return Say("replaced", expected);
}

std::string PrefixExercise::Predict(WorkerSlot slot) {
  const std::vector<BlockHash> path =
      forest_->PathTo(forest_->RandomNode(random_));
  index_->Predict(slot, path, clock_.Now());
  oracle_->Predict(slot, path, clock_.Now());
  return "predicted";
}

std::string PrefixExercise::Withdraw(WorkerSlot slot) {
  const std::vector<BlockHash> path =
      forest_->PathTo(forest_->RandomNode(random_));
  index_->Withdraw(slot, path);
  oracle_->Withdraw(slot, path);
  return "withdrawn";
}

WorkerSlot PrefixExercise::RandomWorker() {
  const std::vector<WorkerSlot> workers = oracle_->Workers();
  return workers[random_.Below(workers.size())];
}

void PrefixExercise::Compare() {
  const std::vector<BlockHash> chain =
      random_.Below(4) == 0 ? forest_->Unknown(random_)
                            : forest_->PathTo(forest_->RandomNode(random_));
  const PrefixMatch match = index_->Match(chain);
  std::vector<int> copied(index_->slot_limit());
  match.CopyTo(absl::MakeSpan(copied));
  std::vector<PrefixMatch::Holding> holdings;
  int deepest = 0;
  for (WorkerSlot slot : oracle_->Workers()) {
    const PrefixOracle::Depth depth =
        oracle_->DepthOf(slot, chain, clock_.Now());
    const int blocks = match.BlocksOf(slot);
    CHECK(blocks <= depth.most && (short_of_memory_ || blocks >= depth.least))
        << "episode " << episodes_ << ", " << left_ << " left: worker " << slot
        << " matches " << blocks << " instead of " << depth.least << " to "
        << depth.most << " of " << chain.size();
    if (blocks > 0) holdings.push_back({slot, blocks});
    deepest = std::max(deepest, blocks);
  }
  CHECK(match.Holdings() == holdings && match.deepest() == deepest &&
        match.empty() == holdings.empty());
  for (const auto& [slot, blocks] : holdings) {
    CHECK(std::exchange(copied[slot], 0) == blocks);
  }
  CHECK(std::all_of(copied.begin(), copied.end(),
                    [](int blocks) { return blocks == 0; }));
  CHECK(index_->bytes() <= options_.max_bytes)
      << index_->bytes() << " bytes for " << index_->distinct_blocks()
      << " blocks in " << index_->runs() << " runs";
  CHECK(short_of_memory_ ? index_->memberships() <= oracle_->memberships()
                         : index_->memberships() == oracle_->memberships());
}

void PrefixExercise::CompareDump(WorkerSlot slot) {
  std::set<BlockHash> dumped;
  for (const BlocksStored& chain : index_->Dump(slot).chains) {
    CHECK(!oracle_->BlocksOf(slot).contains(chain.parent) || short_of_memory_ ||
          dumped.contains(chain.parent))
        << "a chain came before its parent";
    dumped.insert(chain.hashes.begin(), chain.hashes.end());
  }
  const std::set<BlockHash>& held = oracle_->BlocksOf(slot);
  CHECK(std::includes(held.begin(), held.end(), dumped.begin(), dumped.end()));
  CHECK(short_of_memory_ || dumped.size() == held.size());
}

}  // namespace penstock
