// Several answers to one prompt, served by production cores over a real
// backend: what they are, and what they cost.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/engine/sequence_state.h"
#include "common/model/kv_layout.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/contract/local_cluster.h"
#include "tests/contract/served_model.h"

namespace penstock {
namespace {

constexpr int kPrompt = 500;
constexpr int kFullBlocks = kPrompt / kBlockTokens;
// Fits the block that the prompt's tail begins.
constexpr int kGenerated = 8;
static_assert(BlocksFor(kPrompt + kGenerated) == kFullBlocks + 1);

std::unique_ptr<LocalCluster> Cluster(Handoff handoff) {
  LocalClusterOptions options;
  options.model = &ServedModel();
  options.handoff = handoff;
  options.blocks = 1600;
  options.backend = [](Arena arena, std::function<void()> wake) {
    CpuBackendOptions backend;
    backend.model = &ServedModel();
    backend.arena = arena;
    backend.threads = 2;
    backend.spin = false;
    backend.wake = std::move(wake);
    return CpuBackend::Create(backend);
  };
  return std::make_unique<LocalCluster>(options);
}

GenerateRequest Request(int salt = 0) {
  GenerateRequest request;
  for (int i = 0; i < kPrompt; ++i) {
    request.prompt.push_back((i * i + 31 * salt + 7) %
                             ServedModel().spec().vocab_size);
  }
  request.sampling.seed = 1234 + salt;
  request.stop.max_tokens = kGenerated;
  request.stop.ignore_eos = true;
  return request;
}

LocalResult Serve(const GenerateRequest& request, Handoff handoff) {
  LocalResult result = Cluster(handoff)->Serve({request})[0];
  EXPECT_TRUE(result.status.ok()) << result.status;
  return result;
}

std::vector<std::vector<TokenId>> TokensOf(const LocalResult& result) {
  std::vector<std::vector<TokenId>> tokens;
  for (const auto& answer : result.answers) tokens.push_back(answer.tokens);
  return tokens;
}

// --- cost -------------------------------------------------------------------

struct Cost {
  const char* name;
  int samples;
  int width;
};

class AnswersCostTest : public testing::TestWithParam<Cost> {};

INSTANTIATE_TEST_SUITE_P(Ways, AnswersCostTest,
                         testing::Values(Cost{"one", 1, 0},
                                         Cost{"four_samples", 4, 0},
                                         Cost{"four_beams", 1, 4}),
                         [](const auto& info) { return info.param.name; });

// The prompt's pages once, on the wire and in decode's memory; beside them a
// tail of each answer, and of each what was drawn for it.
TEST_P(AnswersCostTest, ThePromptOnceAndTails) {
  const Cost& cost = GetParam();
  GenerateRequest request = Request();
  request.n = cost.samples;
  request.beam.width = cost.width;
  auto cluster = Cluster(Handoff::kTcp);
  const LocalResult result = cluster->Serve({request})[0];
  ASSERT_TRUE(result.status.ok()) << result.status;
  const uint64_t page = cluster->layout().block_bytes();
  EXPECT_EQ(result.transfer.bytes_moved, (kFullBlocks + 1) * page);
  EXPECT_EQ(result.transfer.blocks_moved, kFullBlocks + 1u);
  EXPECT_EQ(result.transfer.decode_prompt_tokens, 0u);
  const int answers = std::max(cost.samples, cost.width);
  EXPECT_EQ(cluster->peak_blocks(), kFullBlocks + answers);
  // The first expansion of a search is made from the best `width` tokens.
  EXPECT_EQ(cluster->state_bytes(),
            StateBytes(kPrompt, cost.samples) + cost.width * 8u);
  for (const auto& answer : result.answers) {
    EXPECT_EQ(answer.tokens.size(), 0u + kGenerated);
  }
  RecordProperty("bytes_moved", absl::StrCat(result.transfer.bytes_moved));
  RecordProperty("blocks", absl::StrCat(cluster->peak_blocks()));
}

// --- seeds ------------------------------------------------------------------

// Equal seeds give equal answers, whatever else is in the batch and wherever
// the prompt was computed.
TEST(AnswersTest, SeedsReproduceInAnyBatchAndAcrossTheHandoff) {
  GenerateRequest request = Request();
  request.n = 4;
  const auto alone = TokensOf(Serve(request, Handoff::kNone));
  EXPECT_NE(alone[0], alone[1]);
  EXPECT_NE(alone[2], alone[3]);
  for (Handoff handoff :
       {Handoff::kNone, Handoff::kShared, Handoff::kInproc, Handoff::kTcp}) {
    for (int batch : {1, 8, 32}) {
      std::vector<GenerateRequest> requests;
      for (int i = 1; i < batch; ++i) {
        requests.push_back(Request(i));
        // Prompts of other lengths, so that steps mix.
        requests.back().prompt.resize(40 + 13 * i);
        requests.back().n = 1 + i % 3;
      }
      requests.insert(requests.begin() + batch / 2, request);
      auto results = Cluster(handoff)->Serve(requests);
      EXPECT_EQ(TokensOf(results[batch / 2]), alone)
          << "batch " << batch << ", handoff " << static_cast<int>(handoff);
    }
  }
}

TEST(AnswersTest, TheFirstOfManyIsTheOnlyOneOfOne) {
  GenerateRequest request = Request();
  const auto one = TokensOf(Serve(request, Handoff::kNone));
  request.n = 3;
  EXPECT_EQ(TokensOf(Serve(request, Handoff::kNone))[0], one[0]);
}

// Its running estimate of surprise travels with each answer.
TEST(AnswersTest, MirostatGoesOnAcrossTheHandoff) {
  GenerateRequest request = Request();
  request.n = 2;
  request.sampling.mirostat.on = true;
  request.sampling.mirostat.tau = 3;
  request.sampling.mirostat.eta = 0.5f;
  request.sampling.penalties.repetition = 1.3f;
  const auto local = TokensOf(Serve(request, Handoff::kNone));
  EXPECT_NE(local[0], local[1]);
  EXPECT_EQ(TokensOf(Serve(request, Handoff::kTcp)), local);
}

// --- best_of ----------------------------------------------------------------

TEST(AnswersTest, BestOfGivesTheMostLikelyBack) {
  GenerateRequest all = Request();
  all.n = 6;
  all.sampling.logprobs = 0;
  const LocalResult made = Serve(all, Handoff::kNone);
  std::vector<std::pair<double, int>> means;
  for (int i = 0; i < 6; ++i) {
    double sum = 0;
    for (const TokenLogprobs& token : made.answers[i].logprobs) {
      sum += token.logprob;
    }
    means.emplace_back(-sum / made.answers[i].logprobs.size(), i);
  }
  std::sort(means.begin(), means.end());
  GenerateRequest best = Request();
  best.n = 2;
  best.best_of = 6;
  for (Handoff handoff : {Handoff::kNone, Handoff::kTcp}) {
    const LocalResult given = Serve(best, handoff);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(given.answers[i].tokens, made.answers[means[i].second].tokens);
      // Nobody asked for them.
      for (const TokenLogprobs& token : given.answers[i].logprobs) {
        EXPECT_EQ(token.logprob, 0);
      }
    }
    EXPECT_EQ(given.usage.completion_tokens, 6 * kGenerated);
  }
}

// --- beam search ------------------------------------------------------------

// The best `count` next tokens after `tokens`, asked of a plain request.
std::vector<std::pair<TokenId, float>> BestAfter(
    LocalCluster& cluster, const std::vector<TokenId>& tokens, int count) {
  GenerateRequest request = Request();
  request.prompt = tokens;
  request.sampling.temperature = 0;
  request.sampling.logprobs = count;
  request.stop.max_tokens = 1;
  return cluster.Serve({request})[0].logprobs[0].top;
}

struct NaiveBeam {
  double sum = 0;
  std::vector<TokenId> tokens;
};

// Beam search over plain requests, to a fixed length.
std::vector<NaiveBeam> NaiveSearch(int width) {
  auto cluster = Cluster(Handoff::kNone);
  std::vector<NaiveBeam> beams = {{}};
  for (int step = 0; step < kGenerated; ++step) {
    std::vector<NaiveBeam> next;
    for (const NaiveBeam& beam : beams) {
      std::vector<TokenId> tokens = Request().prompt;
      tokens.insert(tokens.end(), beam.tokens.begin(), beam.tokens.end());
      for (auto [token, logprob] : BestAfter(*cluster, tokens, width)) {
        NaiveBeam longer = beam;
        longer.sum += logprob;
        longer.tokens.push_back(token);
        next.push_back(std::move(longer));
      }
    }
    std::stable_sort(
        next.begin(), next.end(),
        [](const NaiveBeam& a, const NaiveBeam& b) { return a.sum > b.sum; });
    next.resize(width);
    beams = std::move(next);
  }
  return beams;
}

TEST(AnswersTest, BeamSearchFindsWhatASearchOverPlainRequestsFinds) {
  const std::vector<NaiveBeam> expected = NaiveSearch(4);
  GenerateRequest request = Request();
  request.n = 3;
  request.beam.width = 4;
  request.sampling.logprobs = 0;
  for (Handoff handoff : {Handoff::kNone, Handoff::kShared, Handoff::kTcp}) {
    const LocalResult result = Serve(request, handoff);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(result.answers[i].tokens, expected[i].tokens) << i;
      double sum = 0;
      for (const TokenLogprobs& token : result.answers[i].logprobs) {
        sum += token.logprob;
      }
      EXPECT_DOUBLE_EQ(sum, expected[i].sum);
    }
    EXPECT_EQ(result.usage.completion_tokens, 3 * kGenerated);
  }
}

// --- prompt log-probabilities ------------------------------------------------

TEST(AnswersTest, PromptLogprobsAreThoseOfTheNextToken) {
  GenerateRequest request = Request();
  request.prompt_logprobs = 5;
  auto local = Cluster(Handoff::kNone);
  const LocalResult want = local->Serve({request})[0];
  ASSERT_EQ(want.prompt.size(), kPrompt - 1u);
  for (int at : {1, 2, 16, 17, 255, 256, 257, 498, 499}) {
    const std::vector<TokenId> before(request.prompt.begin(),
                                      request.prompt.begin() + at);
    EXPECT_EQ(want.prompt[at - 1].top, BestAfter(*local, before, 5)) << at;
  }
  // Warm: nothing is taken from the cache.
  const LocalResult warm = local->Serve({request})[0];
  EXPECT_EQ(warm.usage.cached_tokens, 0);
  const LocalResult moved = Serve(request, Handoff::kTcp);
  for (const LocalResult* got : {&warm, &moved}) {
    ASSERT_EQ(got->prompt.size(), want.prompt.size());
    for (size_t i = 0; i < want.prompt.size(); ++i) {
      EXPECT_EQ(got->prompt[i].logprob, want.prompt[i].logprob) << i;
      EXPECT_EQ(got->prompt[i].top, want.prompt[i].top) << i;
    }
    EXPECT_EQ(got->tokens, want.tokens);
  }
}

}  // namespace
}  // namespace penstock
