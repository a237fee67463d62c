#include "common/model/text/word_table.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"

namespace penstock {
namespace {

constexpr size_t kMinCacheSlots = 64;
constexpr size_t kMaxCacheSlots = 1 << 14;
// What a cache remembers in all before it starts over.
constexpr size_t kMaxCacheBytes = 1 << 20;

uint64_t Load(const char* bytes, size_t count) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, count);
  return word;
}

uint64_t Mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

uint64_t WordTable::Hash(absl::string_view word) {
  constexpr uint64_t kFirst = 0xA0761D6478BD642Fu;
  constexpr uint64_t kSecond = 0xE7037ED1A0B428DBu;
  uint64_t hash = word.size() * kFirst;
  size_t at = 0;
  for (; at + 8 < word.size(); at += 8) {
    hash = Mix(hash ^ Load(word.data() + at, 8), kFirst);
  }
  return Mix(hash ^ Load(word.data() + at, word.size() - at), kSecond);
}

void WordTable::Reserve(size_t words) {
  size_t size = 2;
  while (size < words * 2) size *= 2;
  slots_.assign(size, Slot());
  bytes_.clear();
}

void WordTable::Add(absl::string_view word, TokenId id) {
  const uint64_t hash = Hash(word);
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at].id >= 0) at = (at + 1) & mask;
  CHECK(bytes_.size() + word.size() <= UINT32_MAX) << "too many words";
  slots_[at] = {static_cast<uint32_t>(hash >> 32),
                static_cast<uint32_t>(bytes_.size()),
                static_cast<uint32_t>(word.size()), id};
  bytes_.append(word.data(), word.size());
}

TokenId WordTable::Find(absl::string_view word, uint64_t hash) const {
  if (slots_.empty()) return -1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].id >= 0; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.hash == tag && slot.length == word.size() &&
        std::memcmp(bytes_.data() + slot.begin, word.data(), word.size()) ==
            0) {
      return slot.id;
    }
  }
  return -1;
}

WordCache::WordCache(size_t text_bytes) : size_(kMinCacheSlots) {
  while (size_ < kMaxCacheSlots && size_ * 16 < text_bytes) size_ *= 2;
}

bool WordCache::Find(absl::string_view word, uint64_t hash,
                     std::vector<TokenId>& ids) const {
  if (slots_.empty() || word.size() > kMaxWordBytes) return false;
  const Slot& slot = slots_[hash & (size_ - 1)];
  if (slot.hash != hash || slot.length != word.size() ||
      std::memcmp(words_.data() + slot.word, word.data(), word.size()) != 0) {
    return false;
  }
  ids.insert(ids.end(), ids_.begin() + slot.ids,
             ids_.begin() + slot.ids + slot.count);
  return true;
}

void WordCache::Add(absl::string_view word, uint64_t hash, const TokenId* ids,
                    size_t count) {
  if (word.size() > kMaxWordBytes || count > kMaxWordBytes) return;
  if (words_.size() + ids_.size() * sizeof(TokenId) > kMaxCacheBytes) {
    slots_.clear();
    words_.clear();
    ids_.clear();
  }
  if (slots_.empty()) slots_.assign(size_, Slot());
  slots_[hash & (size_ - 1)] = {hash, static_cast<uint32_t>(words_.size()),
                                static_cast<uint32_t>(ids_.size()),
                                static_cast<uint16_t>(word.size()),
                                static_cast<uint16_t>(count)};
  words_.append(word.data(), word.size());
  ids_.insert(ids_.end(), ids, ids + count);
}

}  // namespace penstock
