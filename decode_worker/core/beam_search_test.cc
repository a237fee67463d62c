#include "decode_worker/core/beam_search.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/env/random.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

using Tokens = std::vector<TokenId>;

// A random model over a tiny vocabulary: 0 ends an answer.
class TinyModel {
 public:
  TinyModel(uint64_t seed, int vocabulary)
      : random_(seed), vocabulary_(vocabulary) {}
  // Not random: only what is known may be asked.
  TinyModel(std::map<Tokens, std::vector<float>> known, int vocabulary)
      : random_(0),
        vocabulary_(vocabulary),
        recorded_(true),
        known_(std::move(known)) {}

  const std::vector<float>& After(const Tokens& prefix) {
    auto [it, added] = known_.try_emplace(prefix);
    CHECK(!added || !recorded_) << "a prefix that transformers did not look at";
    if (added) {
      double sum = 0;
      std::vector<double> weights;
      for (int i = 0; i < vocabulary_; ++i) {
        weights.push_back(1 + random_.Below(1'000'000));
        sum += weights.back();
      }
      for (double weight : weights) {
        it->second.push_back(static_cast<float>(std::log(weight / sum)));
      }
    }
    return it->second;
  }

  // Best first.
  std::vector<std::pair<TokenId, float>> Best(const Tokens& prefix, int count) {
    std::vector<std::pair<TokenId, float>> best;
    for (TokenId id = 0; id < vocabulary_; ++id) {
      best.emplace_back(id, After(prefix)[id]);
    }
    std::stable_sort(
        best.begin(), best.end(),
        [](const auto& a, const auto& b) { return a.second > b.second; });
    best.resize(std::min(count, vocabulary_));
    return best;
  }

  int vocabulary() const { return vocabulary_; }

 private:
  SeededRandom random_;
  int vocabulary_;
  bool recorded_ = false;
  std::map<Tokens, std::vector<float>> known_;
};

struct Scored {
  double score = 0;
  Tokens tokens;
};

bool Better(const Scored& a, const Scored& b) { return a.score > b.score; }

double ScoreOf(double sum, size_t length, double penalty) {
  return sum / std::pow(static_cast<double>(length), penalty);
}

// Runs BeamSearch on the model, `offered` best tokens a beam.
std::vector<Scored> Search(TinyModel& model, BeamParams params, int length,
                           int n, int offered) {
  struct Live {
    double sum = 0;
    Tokens tokens;
  };
  BeamSearch search(params);
  std::vector<Live> live = {{}};
  auto keep = [&](const Live& beam) {
    KeptAnswer answer;
    for (TokenId id : beam.tokens) answer.tokens.push_back({id, "", {}});
    search.Keep(std::move(answer), beam.sum);
  };
  for (int at = 1; at <= length && !live.empty(); ++at) {
    std::vector<std::vector<std::pair<TokenId, float>>> best;
    for (const Live& beam : live) {
      best.push_back(model.Best(beam.tokens, offered));
    }
    std::vector<BeamSearch::Beam> beams;
    for (size_t i = 0; i < live.size(); ++i) {
      beams.push_back({live[i].sum, &best[i]});
    }
    auto grown = [&](const BeamSearch::Continuation& next) {
      Live longer{next.sum, live[next.parent].tokens};
      longer.tokens.push_back(best[next.parent][next.choice].first);
      return longer;
    };
    BeamSearch::Step step =
        search.Advance(beams, [&](const BeamSearch::Continuation& next) {
          return best[next.parent][next.choice].first == 0
                     ? BeamSearch::Fate::kEnds
                     : BeamSearch::Fate::kLives;
        });
    for (const auto& next : step.ended) keep(grown(next));
    std::vector<Live> longer;
    for (const auto& next : step.live) longer.push_back(grown(next));
    live = std::move(longer);
    if (!live.empty() && search.Settled(live[0].sum, at)) break;
    if (at == length) {
      for (const Live& beam : live) keep(beam);
    }
  }
  std::vector<Scored> out;
  for (const KeptAnswer& answer : search.Take(n)) {
    out.push_back({answer.score, {}});
    for (const FrameToken& token : answer.tokens) {
      out.back().tokens.push_back(token.id);
    }
  }
  return out;
}

// Every answer there is.
void Enumerate(TinyModel& model, const Tokens& prefix, double sum, int length,
               double penalty, std::vector<Scored>& all) {
  for (TokenId id = 0; id < model.vocabulary(); ++id) {
    Tokens longer = prefix;
    longer.push_back(id);
    const double longer_sum = sum + model.After(prefix)[id];
    if (id == 0 || static_cast<int>(longer.size()) == length) {
      all.push_back({ScoreOf(longer_sum, longer.size(), penalty), longer});
    } else {
      Enumerate(model, longer, longer_sum, length, penalty, all);
    }
  }
}

TEST(BeamSearchTest, AWideSearchFindsTheBestOfAllAnswers) {
  for (double penalty : {0.0, 0.7, 1.0, 2.0}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      TinyModel model(seed, 4);
      std::vector<Scored> all;
      Enumerate(model, {}, 0, 5, penalty, all);
      std::sort(all.begin(), all.end(), Better);
      BeamParams params{400, static_cast<float>(penalty)};
      std::vector<Scored> found = Search(model, params, 5, 10, 4);
      ASSERT_EQ(found.size(), 10u);
      for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(found[i].tokens, all[i].tokens) << seed;
        EXPECT_NEAR(found[i].score, all[i].score, 1e-6);
      }
    }
  }
}

// The rule in other words: all continuations in a table, ranked; an end counts
// within the first `width` ranks, the first `width` others live.
std::vector<Scored> NaiveSearch(TinyModel& model, int width, double penalty,
                                int length, int n) {
  std::vector<std::pair<double, Tokens>> live = {{0.0, {}}};
  std::vector<Scored> ended;
  for (int at = 1; at <= length; ++at) {
    std::vector<std::pair<double, Tokens>> table;
    for (const auto& [sum, tokens] : live) {
      for (TokenId id = 0; id < model.vocabulary(); ++id) {
        Tokens longer = tokens;
        longer.push_back(id);
        table.emplace_back(sum + model.After(tokens)[id], longer);
      }
    }
    std::sort(table.begin(), table.end(),
              [](const auto& a, const auto& b) { return a.first > b.first; });
    live.clear();
    for (size_t rank = 0; rank < table.size(); ++rank) {
      const auto& [sum, tokens] = table[rank];
      if (tokens.back() != 0) {
        if (static_cast<int>(live.size()) < width) live.push_back(table[rank]);
      } else if (static_cast<int>(rank) < width) {
        ended.push_back({ScoreOf(sum, at, penalty), tokens});
      }
    }
    std::sort(ended.begin(), ended.end(), Better);
    if (static_cast<int>(ended.size()) > width) ended.resize(width);
    if (static_cast<int>(ended.size()) == width &&
        ended.back().score >= ScoreOf(live[0].first, at, penalty)) {
      live.clear();
      break;
    }
  }
  for (const auto& [sum, tokens] : live) {
    ended.push_back({ScoreOf(sum, tokens.size(), penalty), tokens});
  }
  std::sort(ended.begin(), ended.end(), Better);
  if (static_cast<int>(ended.size()) > n) ended.resize(n);
  return ended;
}

// `width` best tokens and one for the end are enough of each beam.
TEST(BeamSearchTest, NarrowSearchesFollowTheRule) {
  int early = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    for (double penalty : {0.0, 1.0, 1.5, -0.5}) {
      const int width = 1 + static_cast<int>(seed % 4);
      TinyModel model(seed, 7);
      auto expected = NaiveSearch(model, width, penalty, 8, width);
      auto found = Search(model, {width, static_cast<float>(penalty)}, 8, width,
                          width + 1);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].tokens, expected[i].tokens)
            << "seed " << seed << ", penalty " << penalty << ", rank " << i;
      }
      early += found.back().tokens.size() < 8;
    }
  }
  EXPECT_GT(early, 50);
}

// Recorded searches; see tests/data/beams.
TEST(BeamSearchTest, FindsWhatTransformersFinds) {
  std::ifstream file(PENSTOCK_TEST_DATA "/beams/cases.jsonl");
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const auto found_there = nlohmann::json::parse(line);
    std::map<Tokens, std::vector<float>> known;
    for (const auto& after : found_there["model"]) {
      known[after["prefix"].get<Tokens>()] =
          after["logprobs"].get<std::vector<float>>();
    }
    const int vocabulary = static_cast<int>(known.at({}).size());
    TinyModel model(std::move(known), vocabulary);
    const BeamParams params{found_there["width"],
                            found_there["length_penalty"]};
    const auto found = Search(model, params, found_there["length"],
                              params.width, params.width + 1);
    const auto& expected = found_there["answers"];
    ASSERT_EQ(found.size(), expected.size()) << "case " << cases;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].tokens, expected[i]["tokens"].get<Tokens>())
          << "case " << cases << ", rank " << i;
      EXPECT_NEAR(found[i].score, expected[i]["score"].get<double>(), 1e-4);
    }
  }
  EXPECT_EQ(cases, 24);
}

TEST(BeamSearchTest, WhatIsBarredTakesNoRank) {
  BeamSearch search({1, 1.0f});
  std::vector<std::pair<TokenId, float>> best = {{5, -1}, {0, -2}, {7, -3}};
  auto step =
      search.Advance({{0.0, &best}}, [&](const BeamSearch::Continuation& next) {
        return next.choice == 0   ? BeamSearch::Fate::kBarred
               : next.choice == 1 ? BeamSearch::Fate::kEnds
                                  : BeamSearch::Fate::kLives;
      });
  ASSERT_EQ(step.ended.size(), 1u);
  EXPECT_EQ(step.ended[0].choice, 1);
  ASSERT_EQ(step.live.size(), 1u);
  EXPECT_EQ(step.live[0].choice, 2);
}

}  // namespace
}  // namespace penstock
