// The same seed draws the same tokens, whatever else is in the batch and
// however the request is served, under every sampler there is.

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/env/random.h"
#include "common/peer/error_reason.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/contract/local_cluster.h"
#include "tests/contract/test_models.h"

namespace penstock {
namespace {

constexpr int kRequests = 32;
constexpr int kGenerated = 24;
// Ends no answer here, so that min_tokens has something to hold back.
constexpr TokenId kStop = 7;

struct Sampler {
  const char* name;
  void (*set)(GenerateRequest& request);
};

// A temperature that makes the tiny model's flat logits a choice.
constexpr Sampler kSamplers[] = {
    {"plain", [](GenerateRequest&) {}},
    {"top-k, top-p, min-p",
     [](GenerateRequest& r) {
       r.sampling.top_k = 40;
       r.sampling.top_p = 0.9f;
       r.sampling.min_p = 0.02f;
     }},
    {"typical-p", [](GenerateRequest& r) { r.sampling.typical_p = 0.5f; }},
    {"top-n-sigma", [](GenerateRequest& r) { r.sampling.top_n_sigma = 1.5f; }},
    {"XTC",
     [](GenerateRequest& r) {
       r.sampling.xtc = {0.5f, 0.005f};
     }},
    {"penalties",
     [](GenerateRequest& r) {
       r.sampling.penalties = {1.5f, 0.5f, 0.5f, 30};
     }},
    {"DRY",
     [](GenerateRequest& r) {
       r.sampling.dry = {2, 1.75f, 1, -1, {"\n"}};
     }},
    {"mirostat",
     [](GenerateRequest& r) {
       r.sampling.mirostat = {true, 3, 0.3f};
     }},
    {"bias, allowed, min_tokens",
     [](GenerateRequest& r) {
       r.sampling.logit_bias = {{3, 5}, {kStop, 100}};
       for (TokenId id = 1; id < 60; id += 2) {
         r.sampling.allowed_tokens.push_back(id);
       }
       r.stop.stop_ids = {kStop};
       r.stop.min_tokens = 9;
     }},
    {"greedy with penalties",
     [](GenerateRequest& r) {
       r.sampling.temperature = 0;
       r.sampling.penalties = {1.5f, 0.5f, 0.5f, -1};
     }},
    {"all in another order",
     [](GenerateRequest& r) {
       r.sampling.top_p = 0.95f;
       r.sampling.min_p = 0.01f;
       r.sampling.typical_p = 0.95f;
       r.sampling.penalties = {1.2f, 0.1f, 0.1f, -1};
       r.sampling.dry = {1, 1.75f, 1, -1, {}};
       r.sampling.xtc = {0.5f, 0.01f};
       r.sampling.stages = {
           SamplerStage::kTemperature, SamplerStage::kXtc,
           SamplerStage::kMinP,        SamplerStage::kTopP,
           SamplerStage::kTypicalP,    SamplerStage::kDry,
           SamplerStage::kPenalties,
       };
     }},
};

std::vector<GenerateRequest> Requests() {
  std::vector<GenerateRequest> requests;
  SeededRandom random(3);
  for (int i = 0; i < kRequests; ++i) {
    GenerateRequest request;
    const uint64_t length = 5 + random.Below(60);
    for (uint64_t n = 0; n < length; ++n) {
      request.prompt.push_back(static_cast<TokenId>(random.Below(50)));
    }
    request.sampling.temperature = 0.8f;
    request.sampling.seed = random.Next();
    request.stop.max_tokens = kGenerated;
    request.stop.ignore_eos = true;
    kSamplers[i % std::size(kSamplers)].set(request);
    requests.push_back(request);
  }
  return requests;
}

LocalClusterOptions Options(Handoff handoff) {
  LocalClusterOptions options;
  options.model = &TinyModel();
  options.handoff = handoff;
  options.engine.prefill_chunk = 16;
  options.backend = [](Arena arena, std::function<void()> wake) {
    CpuBackendOptions backend;
    backend.model = &TinyModel();
    backend.arena = arena;
    backend.threads = 2;
    backend.spin = false;
    backend.wake = std::move(wake);
    return CpuBackend::Create(backend);
  };
  return options;
}

// Each request alone, by a worker that prefills for itself.
const std::vector<LocalResult>& Alone() {
  static const auto* alone = [] {
    LocalCluster cluster(Options(Handoff::kNone));
    auto* results = new std::vector<LocalResult>;
    for (const GenerateRequest& request : Requests()) {
      results->push_back(cluster.Serve({request})[0]);
    }
    return results;
  }();
  return *alone;
}

TEST(SamplingReproducibleTest, EverySamplerChangesWhatIsDrawn) {
  std::set<std::vector<TokenId>> different;
  LocalCluster cluster(Options(Handoff::kNone));
  for (const Sampler& sampler : kSamplers) {
    GenerateRequest request = Requests()[0];
    sampler.set(request);
    const LocalResult result = cluster.Serve({request})[0];
    ASSERT_TRUE(result.status.ok()) << sampler.name << ": " << result.status;
    EXPECT_TRUE(different.insert(result.tokens).second) << sampler.name;
  }
}

struct Way {
  const char* name;
  Handoff handoff;
  int batch;
};
constexpr Way kWays[] = {
    {"local_1", Handoff::kNone, 1},    {"local_8", Handoff::kNone, 8},
    {"local_32", Handoff::kNone, 32},  {"shared_8", Handoff::kShared, 8},
    {"inproc_1", Handoff::kInproc, 1}, {"inproc_32", Handoff::kInproc, 32},
    {"shm_8", Handoff::kShm, 8},       {"tcp_32", Handoff::kTcp, 32},
};

class SamplingWayTest : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, SamplingWayTest, testing::ValuesIn(kWays),
                         [](const auto& info) { return info.param.name; });

TEST_P(SamplingWayTest, DrawsTheSameTokens) {
  const std::vector<GenerateRequest> requests = Requests();
  LocalCluster cluster(Options(GetParam().handoff));
  for (int first = 0; first < kRequests; first += GetParam().batch) {
    const std::vector<LocalResult> results =
        cluster.Serve({requests.begin() + first,
                       requests.begin() + first + GetParam().batch});
    for (size_t i = 0; i < results.size(); ++i) {
      const char* name = kSamplers[(first + i) % std::size(kSamplers)].name;
      ASSERT_TRUE(results[i].status.ok()) << name << ": " << results[i].status;
      EXPECT_EQ(results[i].tokens, Alone()[first + i].tokens) << name;
    }
  }
}

TEST(SamplingReproducibleTest, StopTokensWaitForMinTokens) {
  // The bias makes the stop token all but certain once it may be drawn.
  const LocalResult result = Alone()[8];
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.tokens.size(), 10u);
  EXPECT_EQ(result.tokens.back(), kStop);
}

// A request that leaves no token to draw fails alone.
TEST(SamplingReproducibleTest, NothingToDrawEndsThatRequestOnly) {
  std::vector<GenerateRequest> requests = Requests();
  requests.resize(4);
  requests[1].sampling.allowed_tokens = requests[1].stop.stop_ids = {kStop};
  requests[1].stop.min_tokens = 3;
  LocalCluster cluster(Options(Handoff::kNone));
  const std::vector<LocalResult> results = cluster.Serve(requests);
  EXPECT_EQ(results[1].status.code(), absl::StatusCode::kInvalidArgument)
      << results[1].status;
  EXPECT_EQ(ErrorInfoOf(results[1].status).field, "sampling.allowed_tokens");
  for (int i : {0, 2, 3}) {
    ASSERT_TRUE(results[i].status.ok()) << results[i].status;
    EXPECT_EQ(results[i].tokens, Alone()[i].tokens);
  }
}

}  // namespace
}  // namespace penstock
