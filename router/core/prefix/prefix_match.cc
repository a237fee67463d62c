#include "router/core/prefix/prefix_match.h"

#include <algorithm>

#include "common/base/check.h"

namespace penstock {

void PrefixMatch::EndTree() {
  CHECK(trees_ < kTrees);
  begin_[++trees_] = levels_.size();
}

size_t PrefixMatch::words() const {
  size_t words = 0;
  for (size_t tree = 0; tree < trees_; ++tree) {
    if (begin_[tree] == begin_[tree + 1]) continue;
    words = std::max(words, levels_[begin_[tree]].owners.words());
  }
  return std::min(words, alive_.size());
}

uint64_t PrefixMatch::FirstWord(size_t i) const {
  uint64_t word = 0;
  for (size_t tree = 0; tree < trees_; ++tree) {
    if (begin_[tree] == begin_[tree + 1]) continue;
    word |= levels_[begin_[tree]].owners.Word(i);
  }
  return word & alive_[i];
}

bool PrefixMatch::empty() const {
  const size_t end = words();
  for (size_t i = 0; i < end; ++i) {
    if (FirstWord(i) != 0) return false;
  }
  return true;
}

int PrefixMatch::BlocksOf(WorkerSlot slot) const {
  if (!BitOf(alive_, slot)) return 0;
  int most = 0;
  for (size_t tree = 0; tree < trees_; ++tree) {
    for (size_t j = begin_[tree]; j < begin_[tree + 1]; ++j) {
      if (!levels_[j].owners.Contains(slot)) break;
      most = std::max(most, levels_[j].blocks);
    }
  }
  return most;
}

int PrefixMatch::deepest() const {
  int deepest = 0;
  for (size_t tree = 0; tree < trees_; ++tree) {
    // Mostly the last level has an owner, and few of them.
    for (size_t j = begin_[tree + 1]; j > begin_[tree]; --j) {
      if (levels_[j - 1].blocks <= deepest) break;
      if (!Reached(tree, j - 1)) continue;
      deepest = levels_[j - 1].blocks;
      break;
    }
  }
  return deepest;
}

bool PrefixMatch::Reached(size_t tree, size_t level) const {
  const OwnersView& owners = levels_[level].owners;
  const size_t end = std::min(owners.words(), alive_.size());
  for (size_t i = 0; i < end; ++i) {
    uint64_t word = owners.Word(i) & alive_[i];
    for (size_t j = begin_[tree]; j < level && word != 0; ++j) {
      word &= levels_[j].owners.Word(i);
    }
    if (word != 0) return true;
  }
  return false;
}

void PrefixMatch::CopyTo(absl::Span<int> blocks) const {
  std::fill(blocks.begin(), blocks.end(), 0);
  const size_t end = std::min(words(), (blocks.size() + 63) / 64);
  for (size_t i = 0; i < end; ++i) {
    const absl::Span<int> out = blocks.subspan(64 * i, 64);
    for (size_t tree = 0; tree < trees_; ++tree) {
      ForEachDepth(tree, i, [&](uint64_t owners, int depth) {
        if (~owners == 0 && out.size() == 64) {
          for (int& held : out) held = std::max(held, depth);
          return;
        }
        for (; owners != 0; owners &= owners - 1) {
          const auto bit = static_cast<size_t>(std::countr_zero(owners));
          if (bit < out.size()) out[bit] = std::max(out[bit], depth);
        }
      });
    }
  }
}

std::vector<PrefixMatch::Holding> PrefixMatch::Holdings() const {
  std::vector<Holding> holdings;
  ForEach([&](WorkerSlot slot, int blocks) {
    holdings.push_back({slot, blocks});
  });
  return holdings;
}

}  // namespace penstock
