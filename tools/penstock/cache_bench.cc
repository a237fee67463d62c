#include "tools/penstock/cache_bench.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/env/random.h"
#include "common/model/block_hash.h"
#include "kvstore/core/block_pool.h"
#include "kvstore/core/cache_event_log.h"
#include "kvstore/core/prefix_cache.h"

namespace penstock {
namespace {

constexpr uint64_t kVocabulary = 50000;

void AppendTokens(int count, Random& random, std::vector<TokenId>& out) {
  for (int i = 0; i < count; ++i) {
    out.push_back(static_cast<TokenId>(random.Below(kVocabulary)));
  }
}

absl::Status Check(const CacheBenchOptions& options) {
  if (!(options.shared >= 0 && options.shared <= 1)) {
    return absl::InvalidArgumentError("shared must lie between 0 and 1");
  }
  const std::pair<const char*, int> counts[] = {
      {"entries", options.entries},
      {"requests", options.requests},
      {"system-prompts", options.system_prompts},
      {"system-tokens", options.system_tokens},
      {"tail-tokens", options.tail_tokens}};
  for (const auto& [name, value] : counts) {
    if (value < 1 || value > 10'000'000) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " must be from 1 to 10000000"));
    }
  }
  const int tokens = options.system_tokens + options.tail_tokens;
  if (BlocksFor(tokens) > options.entries) {
    return absl::InvalidArgumentError(
        absl::StrCat("a request takes ", BlocksFor(tokens), " of the ",
                     options.entries, " entries"));
  }
  return absl::OkStatus();
}

// The blocks of a worker, and what it does with them for one request.
class Worker {
 public:
  explicit Worker(int entries) : pool_(entries) {}

  void Serve(const std::vector<TokenId>& tokens, CacheBenchResult& result) {
    const int blocks = static_cast<int>(tokens.size()) / kBlockTokens;
    std::vector<BlockHold> holds = cache_.Match(root_, tokens, blocks);
    const int hit = static_cast<int>(holds.size());
    ++result.requests;
    result.hits += hit > 0;
    result.blocks += blocks;
    result.hit_blocks += hit;
    // The tail's last tokens take a block too, that is not published.
    const int wanted = BlocksFor(static_cast<int>(tokens.size())) - hit;
    if (pool_.free() < wanted) {
      result.evicted += cache_.Evict(wanted - pool_.free());
    }
    auto computed = pool_.TryAllocate(wanted);
    CHECK(computed.has_value()) << "one request fits into an idle pool";
    const std::vector<BlockHash> chain = hasher_.Chain(root_, tokens);
    CountMost(chain, result);
    for (int i = hit; i < blocks; ++i) {
      holds.push_back(cache_.Insert(
          i == 0 ? root_ : chain[i - 1], chain[i],
          absl::MakeConstSpan(tokens).subspan(i * kBlockTokens, kBlockTokens),
          (*computed)[i - hit].ref()));
    }
  }

 private:
  void CountMost(const std::vector<BlockHash>& chain,
                 CacheBenchResult& result) {
    int known = 0;
    for (BlockHash hash : chain) known += !seen_.insert(hash).second;
    result.most_hits += known > 0;
    result.most_hit_blocks += known;
  }

  const BlockHasher hasher_{HashSecret("")};
  const BlockHash root_ = hasher_.Root({ContentId(1), "", "", ""});
  BlockPool pool_;
  CacheEventLog log_{0};
  PrefixCache cache_{&pool_, &hasher_, &log_};
  std::set<BlockHash> seen_;
};

}  // namespace

absl::StatusOr<CacheBenchResult> RunCacheBench(
    const CacheBenchOptions& options) {
  RETURN_IF_ERROR(Check(options));
  SeededRandom random(options.seed);
  std::vector<std::vector<TokenId>> systems(options.system_prompts);
  for (auto& system : systems) {
    AppendTokens(options.system_tokens, random, system);
  }
  Worker worker(options.entries);
  CacheBenchResult result;
  for (int i = 0; i < options.requests; ++i) {
    std::vector<TokenId> tokens;
    if (random.Uniform() < options.shared) {
      tokens = systems[random.Below(systems.size())];
    } else {
      AppendTokens(options.system_tokens, random, tokens);
    }
    AppendTokens(options.tail_tokens, random, tokens);
    worker.Serve(tokens, result);
  }
  return result;
}

}  // namespace penstock
