#include "router/core/prefix/run_tree.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"

namespace penstock {

RunTree::Found RunTree::Find(BlockHash hash) const {
  Found found;
  table_.Find(hash, [&](BlockPlace place) {
    const Run& run = runs_[place.run];
    const size_t index = RunArena::IndexOf(run, place.label);
    if (index >= run.length || runs_.HashAt(run, index) != hash) return false;
    found = {place.run, index};
    return true;
  });
  return found;
}

size_t RunTree::CommonLength(Found at,
                             absl::Span<const BlockHash> hashes) const {
  const Run& run = runs_[at.run];
  if (EndsAlike(at, hashes)) return run.length - at.index;
  const uint64_t* own = runs_.Hashes(run) + at.index;
  // The last of those that both have decides, or a search.
  size_t differ = std::min<size_t>(run.length - at.index, hashes.size());
  if (own[differ - 1] == hashes[differ - 1].value()) return differ;
  size_t same = 1;
  for (--differ; same < differ;) {
    const size_t middle = (same + differ) / 2;
    if (own[middle] == hashes[middle].value()) {
      same = middle + 1;
    } else {
      differ = middle;
    }
  }
  return same;
}

bool RunTree::EndsAlike(Found at, absl::Span<const BlockHash> hashes) const {
  const Run& run = runs_[at.run];
  const size_t rest = run.length - at.index;
  return rest > 0 && rest <= hashes.size() && run.last == hashes[rest - 1];
}

RunTree::Found RunTree::FindAlong(absl::Span<const BlockHash> hashes) const {
  Found found;
  table_.Find(hashes[0], [&](BlockPlace place) {
    const Run& run = runs_[place.run];
    const Found at = {place.run, RunArena::IndexOf(run, place.label)};
    if (at.index >= run.length) return false;
    // What stands for its whole prefix spares a look at the rest.
    if (!EndsAlike(at, hashes) && runs_.HashAt(run, at.index) != hashes[0]) {
      return false;
    }
    found = at;
    return true;
  });
  return found;
}

bool RunTree::Owns(WorkerSlot slot, BlockHash hash) const {
  const Found found = Find(hash);
  return found && runs_[found.run].owners.Contains(runs_.words(), slot);
}

void RunTree::Match(absl::Span<const BlockHash> chain,
                    PrefixMatch::Levels& levels) const {
  RunId only = 0;  // the one run below the last, 0 if not known
  for (size_t depth = 0; depth < chain.size();) {
    const absl::Span<const BlockHash> rest = chain.subspan(depth);
    // Found without the table, when its last hash proves it.
    const Found at = only != 0 && EndsAlike({only, 0}, rest) ? Found{only, 0}
                                                             : FindAlong(rest);
    if (!at) return;
    const Run& run = runs_[at.run];
    const size_t common = CommonLength(at, rest);
    depth += common;
    levels.push_back(
        {static_cast<int>(depth), OwnersView(runs_.words(), run.owners)});
    run.recent = true;
    if (run.children == 0 || at.index + common < run.length) return;
    only = run.children == 1 ? run.heir : 0;
  }
}

RunTree::Stored RunTree::Store(WorkerSlot slot, BlockHash parent,
                               absl::Span<const BlockHash> hashes) {
  Stored stored;
  while (!hashes.empty()) {
    Found at = Find(hashes[0]);
    if (at && !Cleanse(at.run)) at = {};
    size_t done = 0;
    if (at) {
      done = AddOwner(slot, at, hashes, stored);
    } else {
      done = Extend(slot, parent, hashes);
      stored.added += done;
    }
    if (done == 0) {
      stored.whole = false;
      break;
    }
    parent = hashes[done - 1];
    hashes.remove_prefix(done);
  }
  return stored;
}

size_t RunTree::AddOwner(WorkerSlot slot, Found at,
                         absl::Span<const BlockHash> hashes, Stored& stored) {
  const size_t common = CommonLength(at, hashes);
  const Run& run = runs_[at.run];
  run.recent = true;
  if (run.owners.Contains(runs_.words(), slot)) return common;
  const RunId id = Isolate(at.run, at.index, common);
  runs_[id].owners.Add(runs_.words(), slot);
  JoinHeir(JoinParent(id));
  stored.added += common;
  return common;
}

size_t RunTree::Extend(WorkerSlot slot, BlockHash parent,
                       absl::Span<const BlockHash> hashes) {
  const RunId id = RunBelow(slot, parent);
  Run& run = runs_[id];
  runs_.Reserve(run, std::min(RunArena::kMaxRun, run.length + hashes.size()));
  size_t done = 0;
  do {
    if (!Insert(id, hashes[done])) break;
    ++done;
  } while (done < hashes.size() && run.length < RunArena::kMaxRun &&
           run.children == 0 && !Find(hashes[done]));
  if (run.length == 0) {
    Detach(id);
    runs_.Free(id);
    return 0;
  }
  runs_.Trim(run);
  JoinHeir(id);
  return done;
}

bool RunTree::Insert(RunId id, BlockHash hash) {
  Run& run = runs_[id];
  const uint16_t label = RunArena::LabelAt(run, run.length);
  const bool inserted = table_.Insert(hash, {id, label}, [&](BlockPlace place) {
    const Run& other = runs_[place.run];
    return runs_.HashAt(other, RunArena::IndexOf(other, place.label));
  });
  if (!inserted) return false;
  runs_.Append(run, hash);
  if (orphans_.empty()) return true;
  auto orphans = orphans_.find(hash);
  if (orphans != orphans_.end()) {
    run.children = orphans->second.count;
    run.heir = orphans->second.heir;
    orphans_.erase(orphans);
  }
  return true;
}

RunId RunTree::RunBelow(WorkerSlot slot, BlockHash parent) {
  Found above = parent ? Find(parent) : Found();
  if (above && !Cleanse(above.run)) above = {};
  if (above) {
    if (above.index + 1 < runs_[above.run].length) {
      above.run = Split(above.run, above.index + 1).first;
    }
    Run& run = runs_[above.run];
    run.recent = true;
    if (run.children == 0 && run.length < RunArena::kMaxRun &&
        run.owners.IsOnly(slot)) {
      return above.run;
    }
  }
  const RunId id = runs_.New();
  Run& run = runs_[id];
  run.owners.Add(runs_.words(), slot);
  run.parent = parent;
  run.recent = true;
  if (above) {
    ++runs_[above.run].children;
    runs_[above.run].heir = id;
  } else if (parent) {
    Orphans& orphans = orphans_[parent];
    ++orphans.count;
    orphans.heir = id;
  }
  return id;
}

bool RunTree::Remove(WorkerSlot slot, BlockHash hash) {
  const Found at = Find(hash);
  if (!at || !runs_[at.run].owners.Contains(runs_.words(), slot)) return false;
  Cleanse(at.run);
  const Run& run = runs_[at.run];
  if (run.owners.IsOnly(slot)) {
    RunId id = at.run;
    if (at.index + 1 < run.length) id = Split(id, at.index + 1).first;
    PopBlock(id);
    return true;
  }
  const RunId id = Isolate(at.run, at.index, 1);
  runs_[id].owners.Remove(runs_.words(), slot);
  JoinHeir(JoinParent(id));
  return true;
}

void RunTree::Clear(WorkerSlot slot, size_t most) {
  for (RunId id = 1; most > 0 && id < runs_.limit(); ++id) {
    const size_t length = runs_[id].length;
    if (length == 0 || !runs_[id].owners.Remove(runs_.words(), slot)) continue;
    most -= length;
    if (runs_[id].owners.empty()) {
      Unlink(id);
    } else {
      JoinHeir(JoinParent(id));
    }
  }
}

void RunTree::Kill(WorkerSlot slot) {
  if (killed_.size() <= slot / 64) killed_.resize(slot / 64 + 1);
  CHECK(!BitOf(killed_, slot)) << "worker slot " << slot << " is dead";
  killed_[slot / 64] |= uint64_t{1} << (slot % 64);
  ++killed_count_;
}

void RunTree::Revive(WorkerSlot slot) {
  // A tree that was made since never heard of it.
  if (!BitOf(killed_, slot)) return;
  killed_[slot / 64] &= ~(uint64_t{1} << (slot % 64));
  --killed_count_;
}

void RunTree::StartSweep() {
  sweep_next_ = 1;
  // Runs that come later are split from clean ones, or are new.
  sweep_end_ = runs_.limit();
}

size_t RunTree::Sweep(size_t runs) {
  size_t visited = 0;
  for (; visited < runs && sweep_next_ < sweep_end_; ++visited) {
    const RunId id = sweep_next_++;
    if (runs_[id].length == 0) continue;
    if (Cleanse(id)) JoinHeir(JoinParent(id));
  }
  return visited;
}

bool RunTree::Cleanse(RunId id) {
  if (killed_count_ == 0) return true;
  Run& run = runs_[id];
  run.owners.RemoveAll(runs_.words(), killed_);
  if (!run.owners.empty()) return true;
  Unlink(id);
  return false;
}

size_t RunTree::bytes() const {
  return runs_.bytes() + table_.bytes() +
         orphans_.capacity() * (sizeof(BlockHash) + sizeof(Orphans) + 1);
}

size_t RunTree::used_bytes() const {
  return bytes() - runs_.bytes() + runs_.used_bytes();
}

}  // namespace penstock
