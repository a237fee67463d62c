#include "router/bench/index_workload.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/model/kv_layout.h"

namespace penstock {
namespace {

// Prompts that are being computed at a time.
constexpr size_t kAtOnce = 64;

constexpr size_t kChurnedTails = 2000;

}  // namespace

IndexWorkload::IndexWorkload(const Options& options)
    : options_(options),
      hasher_(HashSecret("bench")),
      root_(hasher_.Root({})),
      sequences_(options.workers) {
  SeededRandom random(options.seed);
  MakeConversations(random);
  MakeFill(random);
  MakeChurn(random);
}

void IndexWorkload::MakeConversations(Random& random) {
  auto fill = [&](std::vector<TokenId>& tokens, size_t blocks) {
    for (size_t i = 0; i < blocks * kBlockTokens; ++i) {
      tokens.push_back(static_cast<TokenId>(random.Below(1 << 17)));
    }
  };
  std::vector<std::vector<TokenId>> heads(options_.heads);
  for (std::vector<TokenId>& head : heads) fill(head, options_.head_blocks);
  const size_t tail = options_.prompt_blocks - options_.head_blocks;
  const size_t in_heads = options_.heads * options_.head_blocks;
  const size_t count = (options_.blocks - in_heads) / tail;
  for (size_t i = 0; i < count; ++i) {
    Conversation& made = conversations_.emplace_back();
    made.tokens = heads[random.Below(heads.size())];
    fill(made.tokens, tail);
    made.chain = hasher_.Chain(root_, made.tokens);
    if (i >= options_.with_tokens) made.tokens = {};
    // One owner mostly, sometimes some.
    do {
      const auto owner =
          static_cast<WorkerSlot>(random.Below(options_.workers));
      if (std::find(made.owners.begin(), made.owners.end(), owner) ==
          made.owners.end()) {
        made.owners.push_back(owner);
      }
    } while (random.Below(4) == 0);
  }
}

void IndexWorkload::Add(std::vector<Event>& events, WorkerSlot worker,
                        decltype(CacheEvent::change) change) {
  events.push_back({worker, {++sequences_[worker], std::move(change)}});
}

void IndexWorkload::MakeFill(Random& random) {
  struct Prompt {
    size_t conversation = 0;
    WorkerSlot owner = 0;
    size_t done = 0;
  };
  std::vector<Prompt> waiting, running;
  for (size_t i = 0; i < conversations_.size(); ++i) {
    for (WorkerSlot owner : conversations_[i].owners) {
      waiting.push_back({i, owner});
    }
  }
  for (size_t i = waiting.size(); i > 1; --i) {
    std::swap(waiting[i - 1], waiting[random.Below(i)]);
  }
  while (!waiting.empty() || !running.empty()) {
    if (running.size() < kAtOnce && !waiting.empty()) {
      running.push_back(waiting.back());
      waiting.pop_back();
      continue;
    }
    const size_t chosen = random.Below(running.size());
    Prompt& prompt = running[chosen];
    const std::vector<BlockHash>& chain =
        conversations_[prompt.conversation].chain;
    const size_t end =
        std::min(chain.size(), prompt.done + options_.event_blocks);
    BlocksStored stored;
    if (prompt.done > 0) stored.parent = chain[prompt.done - 1];
    stored.hashes.assign(chain.begin() + prompt.done, chain.begin() + end);
    Add(fill_, prompt.owner, std::move(stored));
    prompt.done = end;
    if (end == chain.size()) {
      running[chosen] = running.back();
      running.pop_back();
    }
  }
}

void IndexWorkload::MakeChurn(Random& random) {
  const size_t head = options_.head_blocks;
  const size_t step = options_.event_blocks;
  for (size_t i = 0; i < kChurnedTails; ++i) {
    const Conversation& tail =
        conversations_[random.Below(conversations_.size())];
    const WorkerSlot owner = tail.owners[random.Below(tail.owners.size())];
    for (size_t end = tail.chain.size(); end > head;) {
      const size_t begin = std::max(head, end < step ? 0 : end - step);
      BlocksRemoved removed;
      removed.hashes.assign(tail.chain.rend() - end, tail.chain.rend() - begin);
      Add(churn_, owner, std::move(removed));
      end = begin;
    }
    for (size_t begin = head; begin < tail.chain.size(); begin += step) {
      const size_t end = std::min(tail.chain.size(), begin + step);
      BlocksStored stored{tail.chain[begin - 1], {}};
      stored.hashes.assign(tail.chain.begin() + begin,
                           tail.chain.begin() + end);
      Add(churn_, owner, std::move(stored));
    }
  }
}

size_t IndexWorkload::BlocksIn(const std::vector<Event>& events) {
  size_t blocks = 0;
  for (const Event& event : events) {
    if (const auto* s = std::get_if<BlocksStored>(&event.event.change)) {
      blocks += s->hashes.size();
    } else if (const auto* r =
                   std::get_if<BlocksRemoved>(&event.event.change)) {
      blocks += r->hashes.size();
    }
  }
  return blocks;
}

}  // namespace penstock
