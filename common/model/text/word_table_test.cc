#include "common/model/text/word_table.h"

#include <map>
#include <string>
#include <vector>

#include "common/env/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

std::string RandomWord(Random& random) {
  std::string word;
  for (uint64_t i = 1 + random.Below(20); i > 0; --i) {
    word.push_back(static_cast<char>('a' + random.Below(3)));
  }
  return word;
}

TEST(WordTable, FindsWhatWasAddedAndNothingElse) {
  SeededRandom random(5);
  std::map<std::string, TokenId> words;
  while (words.size() < 5000) {
    words.emplace(RandomWord(random), static_cast<TokenId>(words.size()));
  }
  WordTable table;
  EXPECT_EQ(table.Find("a", WordTable::Hash("a")), -1);
  table.Reserve(words.size());
  for (const auto& [word, id] : words) table.Add(word, id);
  for (int i = 0; i < 20000; ++i) {
    const std::string word = RandomWord(random);
    const auto known = words.find(word);
    EXPECT_EQ(table.Find(word, WordTable::Hash(word)),
              known == words.end() ? -1 : known->second);
  }
}

TEST(WordCache, RemembersTheLastWordOfAPlace) {
  WordCache cache(1 << 16);
  std::vector<TokenId> ids;
  const uint64_t hash = WordTable::Hash("word");
  EXPECT_FALSE(cache.Find("word", hash, ids));
  const std::vector<TokenId> tokens = {4, 2};
  cache.Add("word", hash, tokens.data(), tokens.size());
  EXPECT_TRUE(cache.Find("word", hash, ids));
  EXPECT_TRUE(cache.Find("word", hash, ids));
  EXPECT_THAT(ids, ElementsAre(4, 2, 4, 2));
  // Another word of the same hash is not it.
  EXPECT_FALSE(cache.Find("work", hash, ids));
  cache.Add("work", hash, tokens.data(), 1);
  EXPECT_FALSE(cache.Find("word", hash, ids));
}

TEST(WordCache, ForgetsInsteadOfGrowing) {
  WordCache cache(1 << 20);
  const std::vector<TokenId> tokens(100, 7);
  std::vector<TokenId> ids;
  for (int i = 0; i < 20000; ++i) {
    const std::string word = std::string(100, 'x') + std::to_string(i);
    const uint64_t hash = WordTable::Hash(word);
    cache.Add(word, hash, tokens.data(), tokens.size());
    ids.clear();
    ASSERT_TRUE(cache.Find(word, hash, ids));
    ASSERT_EQ(ids, tokens);
  }
  const std::string longer(WordCache::kMaxWordBytes + 1, 'x');
  cache.Add(longer, 1, tokens.data(), 1);
  EXPECT_FALSE(cache.Find(longer, 1, ids));
}

}  // namespace
}  // namespace penstock
