#include "router/core/prefix/run_arena.h"

#include <algorithm>

namespace penstock {

RunId RunArena::New() {
  RunId id = free_;
  if (id != 0) {
    free_ = (*this)[id].heir;
  } else {
    id = limit_++;
    if (id / kChunk == chunks_.size()) {
      chunks_.push_back(std::make_unique<Run[]>(kChunk));
    }
  }
  (*this)[id] = {};
  ++runs_;
  return id;
}

void RunArena::Free(RunId id) {
  Run& run = (*this)[id];
  run.owners.Release(words_);
  if (run.capacity > 0) words_.Free(run.hashes, run.capacity);
  run = {};
  run.heir = free_;
  free_ = id;
  --runs_;
}

void RunArena::MoveTo(Run& run, size_t words, size_t offset) {
  const WordArena::Handle hashes = words_.Allocate(words);
  if (run.capacity > 0) {
    std::copy_n(Hashes(run), run.length, words_.At(hashes) + offset);
    words_.Free(run.hashes, run.capacity);
  }
  run.hashes = hashes;
  run.capacity = static_cast<uint16_t>(WordArena::Capacity(words));
}

void RunArena::Reserve(Run& run, size_t length) {
  if (length > run.capacity) MoveTo(run, length, 0);
}

void RunArena::Trim(Run& run) {
  if (WordArena::Capacity(run.length) < run.capacity) {
    MoveTo(run, run.length, 0);
  }
}

void RunArena::Append(Run& run, BlockHash hash) {
  Reserve(run, run.length + 1u);
  words_.At(run.hashes)[run.length++] = hash.value();
  run.last = hash;
}

void RunArena::Append(Run& run, const uint64_t* hashes, size_t count) {
  Reserve(run, run.length + count);
  std::copy_n(hashes, count, words_.At(run.hashes) + run.length);
  run.length = static_cast<uint16_t>(run.length + count);
  run.last = HashAt(run, run.length - 1u);
}

void RunArena::Prepend(Run& run, const uint64_t* hashes, size_t count) {
  const size_t length = run.length + count;
  if (length > run.capacity) {
    MoveTo(run, length, count);
  } else {
    uint64_t* at = words_.At(run.hashes);
    std::copy_backward(at, at + run.length, at + length);
  }
  std::copy_n(hashes, count, words_.At(run.hashes));
  run.length = static_cast<uint16_t>(length);
  run.base =
      static_cast<uint16_t>((run.base + kBlockLabels - count) % kBlockLabels);
}

void RunArena::PopFront(Run& run, size_t count) {
  uint64_t* at = words_.At(run.hashes);
  std::copy(at + count, at + run.length, at);
  run.base = LabelAt(run, count);
  run.length = static_cast<uint16_t>(run.length - count);
  Trim(run);
}

void RunArena::PopBack(Run& run, size_t count) {
  run.length = static_cast<uint16_t>(run.length - count);
  run.last = HashAt(run, run.length - 1u);
  if (run.length * 2u <= run.capacity) Trim(run);
}

}  // namespace penstock
