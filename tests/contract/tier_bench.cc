#include "tests/contract/tier_bench.h"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "common/base/check.h"
#include "common/env/random.h"

namespace penstock {
namespace {

constexpr std::chrono::seconds kLongerThanAnyTestShould(60);

}  // namespace

KvLayout TierTestLayout() {
  KvLayout layout;
  layout.layers = 2;
  layout.kv_heads = 1;
  layout.head_dim = 8;
  layout.value_dim = 8;
  return layout;
}

TierBench::TierBench(const Options& options)
    : options_(options),
      layout_(TierTestLayout()),
      hasher_(HashSecret(options.cluster_key)) {
  auto memory = ArenaMemory::Create(options.blocks * page_bytes());
  CHECK(memory.ok()) << memory.status();
  memory_ = *std::move(memory);
}

TierWorker TierBench::worker() {
  return {{layout_.id(), options_.content, options_.numerics},
          ArenaPages(memory_->arena(), layout_),
          hasher_,
          [this] {
            std::lock_guard<std::mutex> lock(mutex_);
            ++wakes_;
            woken_.notify_all();
          }};
}

std::vector<TierKey> TierBench::Chain(uint64_t chain, int blocks) const {
  SeededRandom random(chain);
  std::vector<TierKey> keys;
  BlockHash parent = hasher_.Root({options_.content, "", "", ""});
  for (int i = 0; i < blocks; ++i) {
    TierKey key;
    key.parent = parent;
    for (TokenId& token : key.tokens) {
      token = static_cast<TokenId>(random.Below(50000));
    }
    key.hash = hasher_.Next(parent, key.tokens);
    parent = key.hash;
    keys.push_back(key);
  }
  return keys;
}

std::vector<BlockHash> TierBench::Hashes(const std::vector<TierKey>& keys) {
  std::vector<BlockHash> hashes;
  for (const TierKey& key : keys) hashes.push_back(key.hash);
  return hashes;
}

absl::Span<uint8_t> TierBench::Block(BlockIndex block) {
  return memory_->arena().bytes.subspan(block * page_bytes(), page_bytes());
}

void TierBench::Fill(BlockIndex block, const TierKey& key) {
  SeededRandom random(key.hash.value());
  for (uint8_t& byte : Block(block)) byte = static_cast<uint8_t>(random.Next());
}

bool TierBench::Holds(BlockIndex block, const TierKey& key) {
  SeededRandom random(key.hash.value());
  for (uint8_t byte : Block(block)) {
    if (byte != static_cast<uint8_t>(random.Next())) return false;
  }
  return true;
}

void TierBench::Poison(BlockIndex block) {
  std::fill(Block(block).begin(), Block(block).end(), 0xEE);
}

uint64_t TierBench::wakes() {
  std::lock_guard<std::mutex> lock(mutex_);
  return wakes_;
}

bool TierBench::WaitForWake(uint64_t seen) {
  std::unique_lock<std::mutex> lock(mutex_);
  return woken_.wait_for(lock, kLongerThanAnyTestShould,
                         [&] { return wakes_ > seen; });
}

void TierBench::AwaitWakes(const std::function<bool()>& done) {
  while (true) {
    const uint64_t seen = wakes();
    if (done()) return;
    CHECK(WaitForWake(seen)) << "nothing came";
  }
}

TierCompletion TierBench::Await(KvTier& tier) {
  while (true) {
    const uint64_t seen = wakes();
    if (std::optional<TierCompletion> done = tier.Poll()) return *done;
    CHECK(WaitForWake(seen)) << "no completion came";
  }
}

absl::Status TierBench::Store(KvTier& tier, const TierKey& key,
                              absl::Duration recompute) {
  Fill(0, key);
  while (true) {
    const uint64_t seen = wakes();
    const TierStored stored = tier.Store(key, {0, 1}, recompute);
    switch (stored.verdict) {
      case TierStoreVerdict::kTaken: {
        TierCompletion done = Await(tier);
        CHECK(done.ticket == stored.ticket && done.page == 0);
        return done.status;
      }
      case TierStoreVerdict::kHeld:
        return absl::AlreadyExistsError("held");
      case TierStoreVerdict::kNotWorthIt:
        return absl::FailedPreconditionError("not worth it");
      case TierStoreVerdict::kBusy:
        CHECK(!tier.Poll().has_value());
        CHECK(WaitForWake(seen)) << "busy for ever";
    }
  }
}

void TierBench::StoreAll(KvTier& tier, const std::vector<TierKey>& keys) {
  for (const TierKey& key : keys) {
    absl::Status status = Store(tier, key);
    CHECK(status.ok()) << status;
  }
}

absl::Status TierBench::Fetch(KvTier& tier, const TierKey& key) {
  Poison(1);
  const TierTicket ticket = tier.Fetch({{key, {1, 1}}});
  TierCompletion done = Await(tier);
  CHECK(done.ticket == ticket && done.page == 0);
  if (done.status.ok()) CHECK(Holds(1, key)) << "a wrong page was served";
  return done.status;
}

int TierBench::Lookup(KvTier& tier, const std::vector<TierKey>& keys) {
  while (true) {
    const uint64_t seen = wakes();
    const TierLookup found = tier.Lookup(Hashes(keys));
    if (!found.asking) return found.blocks;
    CHECK(!tier.Poll().has_value());
    CHECK(WaitForWake(seen)) << "asked, and never answered";
  }
}

TemporaryFolder::TemporaryFolder() {
  std::string name =
      (std::filesystem::temp_directory_path() / "penstock-test-XXXXXX")
          .string();
  CHECK(mkdtemp(name.data()) != nullptr);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

}  // namespace penstock
