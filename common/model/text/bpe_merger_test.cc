#include "common/model/text/bpe_merger.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "common/env/random.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

struct Rules {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
};

BpeMerger Merger(const Rules& rules) {
  const auto id = [&rules](const std::string& token) {
    const auto found =
        std::find(rules.tokens.begin(), rules.tokens.end(), token);
    return static_cast<TokenId>(found - rules.tokens.begin());
  };
  std::vector<BpeMerger::Rule> made;
  for (size_t i = 0; i < rules.merges.size(); ++i) {
    const std::string& merge = rules.merges[i];
    const size_t space = merge.find(' ');
    const std::string left = merge.substr(0, space);
    const std::string right = merge.substr(space + 1);
    made.push_back(
        {id(left), id(right), id(left + right), static_cast<int32_t>(i)});
  }
  return BpeMerger(made);
}

// The definition, on strings: while some rule applies, the best one, at its
// leftmost place, once.
std::vector<std::string> NaiveMerge(const Rules& rules,
                                    std::vector<std::string> symbols) {
  std::map<std::string, size_t> ranks;
  for (size_t i = 0; i < rules.merges.size(); ++i) {
    ranks.emplace(rules.merges[i], i);
  }
  for (;;) {
    size_t best = rules.merges.size();
    size_t place = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto rank = ranks.find(symbols[i] + " " + symbols[i + 1]);
      if (rank != ranks.end() && rank->second < best) {
        best = rank->second;
        place = i;
      }
    }
    if (best == rules.merges.size()) return symbols;
    symbols[place] += symbols[place + 1];
    symbols.erase(symbols.begin() + place + 1);
  }
}

Rules RandomRules(Random& random) {
  Rules rules;
  rules.tokens = {"a", "b", "c"};
  const uint64_t count = 1 + random.Below(20);
  for (uint64_t i = 0; i < count; ++i) {
    const std::string left = rules.tokens[random.Below(rules.tokens.size())];
    const std::string right = rules.tokens[random.Below(rules.tokens.size())];
    rules.merges.push_back(left + " " + right);
    bool known = false;
    for (const std::string& token : rules.tokens) {
      known = known || token == left + right;
    }
    if (!known) rules.tokens.push_back(left + right);
  }
  return rules;
}

TEST(BpeMerger, AgreesWithTheDefinition) {
  SeededRandom random(3);
  for (int round = 0; round < 2000; ++round) {
    const Rules rules = RandomRules(random);
    const BpeMerger merger = Merger(rules);
    BpeMerger::Session session(merger);
    for (int text = 0; text < 5; ++text) {
      std::vector<TokenId> ids;
      std::vector<std::string> symbols;
      const uint64_t length = random.Below(90);
      for (uint64_t i = 0; i < length; ++i) {
        ids.push_back(static_cast<TokenId>(random.Below(3)));
        symbols.push_back(rules.tokens[ids.back()]);
      }
      session.Merge(ids);
      std::vector<std::string> merged;
      for (const TokenId id : ids) merged.push_back(rules.tokens[id]);
      ASSERT_EQ(merged, NaiveMerge(rules, symbols)) << "round " << round;
    }
  }
}

// What a text of `count` symbols costs, for each symbol.
double LookupsEach(const BpeMerger& merger, std::vector<TokenId> symbols) {
  BpeMerger::Session session(merger);
  const size_t count = symbols.size();
  session.Merge(symbols);
  EXPECT_EQ(session.work().sorted, 0u);
  return static_cast<double>(session.work().lookups) / count;
}

// A long run of one symbol, or of a few, is merged in linear time: no place is
// sorted, and the work for each symbol does not grow.
TEST(BpeMerger, WorkIsLinearInARepetitiveText) {
  Rules doubling = {{"a", "b", "c", "d"}, {}};
  for (std::string token = "a"; token.size() < 256; token += token) {
    doubling.tokens.push_back(token + token);
    doubling.merges.push_back(token + " " + token);
  }
  const Rules cycle = {{"a", "b", "c", "d", "ab", "cd", "abcd", "abcdabcd"},
                       {"c d", "a b", "ab cd", "abcd abcd"}};
  for (const Rules& rules : {doubling, cycle}) {
    const BpeMerger merger = Merger(rules);
    for (const int period : {1, 4}) {
      std::vector<TokenId> symbols;
      for (int i = 0; i < 1 << 20; ++i) symbols.push_back(i % period);
      const double whole = LookupsEach(merger, symbols);
      symbols.resize(symbols.size() / 64);
      EXPECT_NEAR(whole, LookupsEach(merger, symbols), 0.01);
      EXPECT_LT(whole, 6);
    }
  }
}

// With equal ranks, as SentencePiece's scores can be, the leftmost place is
// merged first whatever the rule.
TEST(BpeMerger, TheLeftmostOfEqualRanksGoesFirst) {
  const BpeMerger merger({{0, 1, 2, 5}, {1, 0, 3, 5}});
  for (const size_t repeats : {1, 50}) {
    std::vector<TokenId> symbols;
    for (size_t i = 0; i < repeats; ++i) {
      symbols.insert(symbols.end(), {0, 1, 0});
    }
    BpeMerger::Session session(merger);
    session.Merge(symbols);
    std::vector<TokenId> expected;
    for (size_t i = 0; i < repeats; ++i) {
      expected.insert(expected.end(), {2, 0});
    }
    EXPECT_EQ(symbols, expected);
  }
}

}  // namespace
}  // namespace penstock
