#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/id.h"
#include "common/env/random.h"
#include "common/model/block_hash.h"
#include "common/peer/worker_report.h"
#include "router/core/prefix/prefix_match.h"

namespace penstock {

// What a router's index has to hold and to answer: conversations of one length,
// each with a head that many share and a tail of its own, every head cached by
// all workers that have a conversation under it. A value.
class IndexWorkload {
 public:
  struct Options {
    size_t workers = 1000;
    size_t blocks = 1'000'000;  // distinct ones, about
    size_t prompt_blocks = 256;
    size_t head_blocks = 64;
    size_t heads = 64;
    // Conversations whose tokens are kept, to be hashed again.
    size_t with_tokens = 512;
    size_t event_blocks = 32;  // of one event
    uint64_t seed = 1;
  };

  struct Conversation {
    std::vector<BlockHash> chain;
    std::vector<WorkerSlot> owners;
    std::vector<TokenId> tokens;  // of the first ones
  };
  struct Event {
    WorkerSlot worker = 0;
    CacheEvent event;
  };

  explicit IndexWorkload(const Options& options);

  const Options& options() const { return options_; }
  const std::vector<Conversation>& conversations() const {
    return conversations_;
  }
  // Stores every conversation with each of its owners, some dozens of them at
  // a time, as workers compute prompts. Sequences begin with 1.
  const std::vector<Event>& fill() const { return fill_; }
  // After those: evicts the tails of random conversations from their end, and
  // stores them again.
  const std::vector<Event>& churn() const { return churn_; }

  // Blocks that such events name.
  static size_t BlocksIn(const std::vector<Event>& events);

  BlockHash root() const { return root_; }
  const BlockHasher& hasher() const { return hasher_; }

 private:
  void MakeConversations(Random& random);
  void MakeFill(Random& random);
  void MakeChurn(Random& random);
  void Add(std::vector<Event>& events, WorkerSlot worker,
           decltype(CacheEvent::change) change);

  Options options_;
  BlockHasher hasher_;
  BlockHash root_;
  std::vector<Conversation> conversations_;
  std::vector<uint64_t> sequences_;  // the last one of each worker
  std::vector<Event> fill_, churn_;
};

}  // namespace penstock
