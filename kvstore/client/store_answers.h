#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/env/clock.h"

namespace penstock {

// What the KV store said that it holds, for as long as that is taken for true,
// and what it is being asked. Bounded: beyond a quarter of a million blocks
// everything is asked anew. Single-threaded.
class StoreAnswers {
 public:
  // An answer is taken for true for `freshness`.
  explicit StoreAnswers(absl::Duration freshness) : freshness_(freshness) {}

  struct Belief {
    int blocks = 0;       // the chain's leading blocks that it holds
    bool asking = false;  // its answer may tell of more
    bool ask = false;     // nobody has asked yet: now `id` does
  };
  // `id` is new with each call.
  Belief Look(uint64_t id, absl::Span<const BlockHash> chain, Instant now);
  // It holds so many blocks of the chain that `id` asked for. Nothing happens
  // for an unknown id.
  void Found(uint64_t id, int blocks, Instant now);

  bool Holds(BlockHash hash, Instant now) const;
  void SetHeld(BlockHash hash, Instant now);
  // What was believed of it is not so.
  void Doubt(BlockHash hash);
  // It is away: what it was asked stays without an answer.
  void Clear();

 private:
  struct Answer {
    int blocks = 0;
    Instant until;
    bool waiting = false;
  };
  using Ends = std::pair<BlockHash, BlockHash>;  // a chain's first and last

  const absl::Duration freshness_;
  absl::flat_hash_map<BlockHash, Instant> held_;  // until then
  absl::flat_hash_map<Ends, Answer> answers_;
  std::map<uint64_t, std::vector<BlockHash>> asked_;
};

}  // namespace penstock
