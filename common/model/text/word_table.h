#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/id.h"

namespace penstock {

// Words and the one token that each becomes: what most words of a text need.
// Filled once, then immutable and safe from any thread.
class WordTable {
 public:
  static uint64_t Hash(absl::string_view word);

  // Makes room; the table is empty afterwards.
  void Reserve(size_t words);
  // Precondition: not more words than were reserved; none twice.
  void Add(absl::string_view word, TokenId id);
  // -1: not there. `hash` is the word's.
  TokenId Find(absl::string_view word, uint64_t hash) const;

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t begin = 0;  // in bytes_
    uint32_t length = 0;
    TokenId id = -1;  // -1: free
  };
  std::vector<Slot> slots_;
  std::string bytes_;
};

// The tokens of words that one call has seen already. A value with one owner;
// forgets words when places run out.
class WordCache {
 public:
  // `text_bytes`: how much text it is for; no memory until the first Add.
  explicit WordCache(size_t text_bytes);

  // Appends the tokens of a word that is remembered, or gives false.
  bool Find(absl::string_view word, uint64_t hash,
            std::vector<TokenId>& ids) const;
  void Add(absl::string_view word, uint64_t hash, const TokenId* ids,
           size_t count);

  static constexpr size_t kMaxWordBytes = 128;

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t word = 0;  // in words_
    uint32_t ids = 0;   // in ids_
    uint16_t length = 0;
    uint16_t count = 0;
  };
  size_t size_;  // a power of two
  std::vector<Slot> slots_;
  std::string words_;
  std::vector<TokenId> ids_;
};

}  // namespace penstock
