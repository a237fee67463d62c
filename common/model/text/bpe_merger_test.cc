#include "common/model/text/bpe_merger.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/env/random.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

struct Rules {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
};

BpeMerger::TokenIds Index(const Rules& rules) {
  BpeMerger::TokenIds ids;
  for (size_t i = 0; i < rules.tokens.size(); ++i) {
    ids.emplace(rules.tokens[i], static_cast<TokenId>(i));
  }
  return ids;
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
    const absl::StatusOr<BpeMerger> merger =
        BpeMerger::Create(rules.merges, Index(rules));
    ASSERT_TRUE(merger.ok()) << merger.status();
    BpeMerger::Session session(*merger);
    for (int text = 0; text < 5; ++text) {
      std::vector<TokenId> ids;
      std::vector<std::string> symbols;
      const uint64_t length = random.Below(40);
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

TEST(BpeMerger, RefusesRulesThatContradictTheVocabulary) {
  Rules rules = {{"a", "b", "ab"}, {"a b", ""}};
  for (const auto& [rule, what] :
       std::vector<std::pair<std::string, std::string>>{
           {"ab", "not two tokens"},
           {" b", "not two tokens"},
           {"a ", "not two tokens"},
           {"", "not two tokens"},
           {"b a", "lacks"},
           {"x b", "lacks"}}) {
    rules.merges[1] = rule;
    const auto merger = BpeMerger::Create(rules.merges, Index(rules));
    EXPECT_EQ(merger.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(merger.status().message().find(
                  absl::StrCat("tokenizer.ggml.merges[1] '", rule, "'")),
              absl::string_view::npos)
        << merger.status();
    EXPECT_NE(merger.status().message().find(what), absl::string_view::npos);
  }
}

}  // namespace
}  // namespace penstock
