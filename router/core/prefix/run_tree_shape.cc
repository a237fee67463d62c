// How runs split, join and go.

#include <bit>
#include <utility>

#include "common/base/check.h"
#include "router/core/prefix/run_tree.h"

namespace penstock {

std::pair<RunId, RunId> RunTree::Split(RunId id, size_t at) {
  const RunId fresh = runs_.New();
  Run& old = runs_[id];
  Run& part = runs_[fresh];
  part.owners = old.owners.Clone(runs_.words());
  part.recent = old.recent;
  if (2 * at <= old.length) {
    ReplaceHeir(old.parent, id, fresh);
    part.parent = old.parent;
    part.children = 1;
    part.heir = id;
    runs_.Append(part, runs_.Hashes(old), at);
    Relabel(id, 0, fresh, 0, at);
    runs_.PopFront(old, at);
    old.parent = part.last;
    return {fresh, id};
  }
  const size_t count = old.length - at;
  part.parent = runs_.HashAt(old, at - 1);
  part.children = std::exchange(old.children, 1);
  part.heir = std::exchange(old.heir, fresh);
  runs_.Append(part, runs_.Hashes(old) + at, count);
  Relabel(id, at, fresh, 0, count);
  runs_.PopBack(old, count);
  return {id, fresh};
}

RunId RunTree::Isolate(RunId id, size_t index, size_t count) {
  if (index > 0) id = Split(id, index).second;
  if (count < runs_[id].length) id = Split(id, count).first;
  return id;
}

bool RunTree::Joinable(RunId left, RunId right) const {
  const Run& l = runs_[left];
  const Run& r = runs_[right];
  return left != right && l.children == 1 && r.length > 0 &&
         r.parent == l.last &&
         size_t{l.length} + r.length <= RunArena::kMaxRun &&
         l.owners.Equals(runs_.words(), r.owners);
}

RunId RunTree::JoinParent(RunId id) {
  const BlockHash parent = runs_[id].parent;
  if (!parent) return id;
  const Found above = Find(parent);
  return above && Joinable(above.run, id) ? Join(above.run, id) : id;
}

RunId RunTree::JoinHeir(RunId id) {
  const RunId heir = runs_[id].heir;
  return heir != 0 && Joinable(id, heir) ? Join(id, heir) : id;
}

RunId RunTree::Join(RunId left, RunId right) {
  Run& l = runs_[left];
  Run& r = runs_[right];
  const bool recent = l.recent || r.recent;
  if (r.length <= l.length) {
    const size_t before = l.length;
    runs_.Append(l, runs_.Hashes(r), r.length);
    Relabel(right, 0, left, before, r.length);
    l.children = r.children;
    l.heir = r.heir;
    l.recent = recent;
    runs_.Free(right);
    return left;
  }
  ReplaceHeir(l.parent, left, right);
  const size_t count = l.length;
  runs_.Prepend(r, runs_.Hashes(l), count);
  Relabel(left, 0, right, 0, count);
  r.parent = l.parent;
  r.recent = recent;
  runs_.Free(left);
  return right;
}

void RunTree::Relabel(RunId from, size_t from_index, RunId to, size_t to_index,
                      size_t count) {
  const Run& old = runs_[from];
  const Run& now = runs_[to];
  for (size_t i = 0; i < count; ++i) {
    table_.Move(runs_.HashAt(now, to_index + i),
                {from, RunArena::LabelAt(old, from_index + i)},
                {to, RunArena::LabelAt(now, to_index + i)});
  }
}

void RunTree::PopBlock(RunId id) {
  Run& run = runs_[id];
  if (run.length == 1) {
    Unlink(id);
    return;
  }
  const BlockHash hash = run.last;
  table_.Erase(hash, {id, RunArena::LabelAt(run, run.length - 1u)});
  if (run.children > 0) orphans_[hash] = {run.children, run.heir};
  run.children = 0;
  run.heir = 0;
  runs_.PopBack(run, 1);
}

void RunTree::Unlink(RunId id) {
  Detach(id);
  const Run& run = runs_[id];
  for (size_t i = 0; i < run.length; ++i) {
    table_.Erase(runs_.HashAt(run, i), {id, RunArena::LabelAt(run, i)});
  }
  if (run.children > 0) {
    orphans_[run.last] = {run.children, run.heir};
  }
  runs_.Free(id);
}

void RunTree::Detach(RunId id) {
  const BlockHash parent = runs_[id].parent;
  if (!parent) return;
  if (const Found above = Find(parent)) {
    --runs_[above.run].children;
    return;
  }
  auto orphans = orphans_.find(parent);
  if (--orphans->second.count == 0) orphans_.erase(orphans);
}

void RunTree::ReplaceHeir(BlockHash parent, RunId from, RunId to) {
  if (!parent) return;
  if (const Found above = Find(parent)) {
    if (runs_[above.run].heir == from) runs_[above.run].heir = to;
    return;
  }
  auto orphans = orphans_.find(parent);
  if (orphans->second.heir == from) orphans->second.heir = to;
}

void RunTree::CheckStructure() const {
  size_t blocks = 0;
  absl::flat_hash_map<BlockHash, uint32_t> children;
  for (RunId id = 1; id < runs_.limit(); ++id) {
    const Run& run = runs_[id];
    if (run.length == 0) continue;
    CHECK(!run.owners.empty()) << "run " << id << " has no owner";
    blocks += run.length;
    for (size_t i = 0; i < run.length; ++i) {
      const Found found = Find(runs_.HashAt(run, i));
      CHECK(found.run == id && found.index == i)
          << "block " << i << " of run " << id << " is not found";
    }
    if (run.parent) ++children[run.parent];
  }
  CHECK(blocks == table_.size()) << "the table has others";
  size_t orphaned = 0;
  for (RunId id = 1; id < runs_.limit(); ++id) {
    const Run& run = runs_[id];
    if (run.length == 0) continue;
    auto below = children.find(run.last);
    CHECK(run.children == (below == children.end() ? 0 : below->second))
        << "run " << id << " has other children";
    if (!run.parent) continue;
    if (const Found above = Find(run.parent)) {
      CHECK(above.index + 1 == runs_[above.run].length)
          << "run " << id << " hangs amid another";
    } else {
      CHECK(orphans_.at(run.parent).count == children[run.parent])
          << "run " << id << " is not counted as an orphan";
      if (runs_[id].parent) ++orphaned;
    }
  }
  CHECK(orphans_.size() <= orphaned) << "orphans of nobody";
}

}  // namespace penstock
