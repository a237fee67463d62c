// One prompt, longer than two attention splits, served in every way there is:
// the same tokens and the same bits of every log-probability.

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/files/model_file.h"
#include "common/model/kv_layout.h"
#include "common/transfer/page_faults.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/contract/local_cluster.h"
#include "tests/contract/model_cases.h"
#include "tests/contract/served_model.h"

namespace penstock {
namespace {

constexpr int kPromptTokens = 600;  // an attention split has 256
constexpr int kGenerated = 12;
constexpr int kPromptBlocks = BlocksFor(kPromptTokens);

const ModelFile& Model() { return ServedModel(); }

// Real text: the scored passages one after the other.
std::vector<TokenId> Text(int tokens, int skip = 0) {
  static const std::vector<TokenId>* all = [] {
    auto* ids = new std::vector<TokenId>;
    while (ids->size() < 4000) {
      for (const ScoreCase& c : ReadScoreCases(PENSTOCK_TEST_DATA "/cases")) {
        ids->insert(ids->end(), c.ids.begin(), c.ids.end());
      }
    }
    return ids;
  }();
  std::vector<TokenId> text(all->begin() + skip, all->begin() + skip + tokens);
  // For a model with a smaller vocabulary any tokens will do.
  for (TokenId& id : text) id %= Model().spec().vocab_size;
  return text;
}

GenerateRequest Request(std::vector<TokenId> prompt, int max_tokens) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0;
  request.sampling.logprobs = 5;
  request.stop.max_tokens = max_tokens;
  request.stop.ignore_eos = true;
  return request;
}

GenerateRequest TheRequest() {
  return Request(Text(kPromptTokens), kGenerated);
}

LocalClusterOptions ClusterOptions(Handoff handoff,
                                   CpuPath path = CpuPath::kAuto,
                                   int chunk = 512,
                                   KvType kv_type = KvType::kF16) {
  LocalClusterOptions options;
  options.model = &Model();
  options.handoff = handoff;
  options.engine.prefill_chunk = chunk;
  options.kv_type = kv_type;
  options.backend = [=](Arena arena, std::function<void()> wake) {
    CpuBackendOptions backend;
    backend.model = &Model();
    backend.kv_type = kv_type;
    backend.arena = arena;
    backend.threads = 2;
    backend.path = path;
    backend.spin = false;
    backend.wake = std::move(wake);
    return CpuBackend::Create(backend);
  };
  return options;
}

uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

void ExpectSameBits(const LocalResult& got, const LocalResult& want,
                    const std::string& how) {
  ASSERT_TRUE(got.status.ok()) << how << ": " << got.status;
  EXPECT_EQ(got.tokens, want.tokens) << how;
  ASSERT_EQ(got.logprobs.size(), want.logprobs.size()) << how;
  for (size_t i = 0; i < want.logprobs.size(); ++i) {
    EXPECT_EQ(Bits(got.logprobs[i].logprob), Bits(want.logprobs[i].logprob))
        << how << ", token " << i;
    ASSERT_EQ(got.logprobs[i].top.size(), 5u) << how;
    for (size_t k = 0; k < 5; ++k) {
      EXPECT_EQ(got.logprobs[i].top[k].first, want.logprobs[i].top[k].first);
      EXPECT_EQ(Bits(got.logprobs[i].top[k].second),
                Bits(want.logprobs[i].top[k].second))
          << how << ", token " << i << ", rank " << k;
    }
  }
}

// Run locally, alone, cold, in one chunk a step: what all others are held to.
const LocalResult& Baseline(KvType type = KvType::kF16) {
  static auto* baselines = new std::map<KvType, LocalResult>;
  const auto [found, missing] = baselines->try_emplace(type);
  if (missing) {
    LocalCluster cluster(
        ClusterOptions(Handoff::kNone, CpuPath::kAuto, 512, type));
    found->second = cluster.Serve({TheRequest()})[0];
  }
  return found->second;
}

uint64_t PageBytes(KvType type) {
  return KvLayout::For(Model().spec(), type).block_bytes();
}

struct Combination {
  const char* name;
  Handoff handoff;
  int chunk;
  CpuPath path;
  int batch;  // requests served at once; the prompt is one of them
  KvType kv_type = KvType::kF16;
};

// The written list of combinations. Each is served cold, then warm.
constexpr Combination kCombinations[] = {
    {"local_chunk_64", Handoff::kNone, 64, CpuPath::kAuto, 1},
    {"local_batch_16", Handoff::kNone, 512, CpuPath::kAuto, 16},
    {"shared_chunk_512", Handoff::kShared, 512, CpuPath::kAuto, 1},
    {"inproc_chunk_64", Handoff::kInproc, 64, CpuPath::kAuto, 1},
    {"shm_chunk_512", Handoff::kShm, 512, CpuPath::kAuto, 1},
    {"tcp_chunk_64_batch_16", Handoff::kTcp, 64, CpuPath::kAuto, 16},
    {"tcp_chunk_512_avx2", Handoff::kTcp, 512, CpuPath::kAvx2, 1},
    {"inproc_int8", Handoff::kInproc, 64, CpuPath::kAuto, 1, KvType::kInt8},
    {"tcp_int8_batch_16", Handoff::kTcp, 64, CpuPath::kAuto, 16, KvType::kInt8},
    {"shm_int4", Handoff::kShm, 512, CpuPath::kAvx2, 1, KvType::kInt4},
    {"shm_fp8", Handoff::kShm, 64, CpuPath::kAuto, 1, KvType::kFp8},
    {"inproc_bf16", Handoff::kInproc, 64, CpuPath::kAuto, 1, KvType::kBf16},
};

class BitEqualityTest : public testing::TestWithParam<Combination> {};

INSTANTIATE_TEST_SUITE_P(Ways, BitEqualityTest,
                         testing::ValuesIn(kCombinations),
                         [](const auto& info) { return info.param.name; });

void ExpectThatKvMoved(Handoff handoff, const TransferSummary& moved,
                       uint64_t lacking, KvType type = KvType::kF16) {
  switch (handoff) {
    case Handoff::kNone:
      EXPECT_EQ(moved.bytes_moved, 0u);
      break;
    case Handoff::kShared:
      EXPECT_EQ(moved.bytes_moved, 0u);
      EXPECT_EQ(moved.blocks_shared, static_cast<uint64_t>(kPromptBlocks));
      EXPECT_EQ(moved.decode_prompt_tokens, 0u);
      break;
    default:
      EXPECT_EQ(moved.blocks_moved, lacking);
      EXPECT_EQ(moved.bytes_moved, lacking * PageBytes(type));
      EXPECT_EQ(moved.decode_prompt_tokens, 0u);
  }
}

TEST_P(BitEqualityTest, ColdAndWarm) {
  const Combination& way = GetParam();
  if (FindKernels(way.path) == nullptr) {
    std::printf("this machine has no %s; the way is not run\n",
                std::string(CpuPathName(way.path)).c_str());
    return;
  }
  LocalCluster cluster(
      ClusterOptions(way.handoff, way.path, way.chunk, way.kv_type));
  std::vector<GenerateRequest> requests;
  for (int i = 1; i < way.batch; ++i) {
    requests.push_back(Request(Text(20 + 9 * i, 11 * i), kGenerated));
  }
  requests.push_back(TheRequest());
  LocalResult cold = cluster.Serve(requests).back();
  ExpectSameBits(cold, Baseline(way.kv_type), absl::StrCat(way.name, " cold"));
  EXPECT_EQ(cold.usage.cached_tokens, 0);
  ExpectThatKvMoved(way.handoff, cold.transfer, kPromptBlocks, way.kv_type);

  LocalResult warm = cluster.Serve(requests).back();
  ExpectSameBits(warm, Baseline(way.kv_type), absl::StrCat(way.name, " warm"));
  EXPECT_EQ(warm.usage.cached_tokens,
            (kPromptTokens - 1) / kBlockTokens * kBlockTokens);
  // Only the partly filled last block is missing.
  ExpectThatKvMoved(way.handoff, warm.transfer,
                    kPromptTokens % kBlockTokens ? 1 : 0, way.kv_type);
}

// A prefill worker that keeps INT8 and a decode worker that keeps F16.
TEST(BitEqualityOnlyTest, OtherKvTypesAreRefused) {
  LocalClusterOptions options = ClusterOptions(Handoff::kInproc);
  options.backend = [made = 0](Arena arena,
                               std::function<void()> wake) mutable {
    CpuBackendOptions backend;
    backend.model = &Model();
    backend.kv_type = made++ == 0 ? KvType::kInt8 : KvType::kF16;
    backend.arena = arena;
    backend.spin = false;
    backend.wake = std::move(wake);
    return CpuBackend::Create(backend);
  };
  LocalCluster cluster(options);
  const absl::Status status = cluster.Serve({TheRequest()})[0].status;
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("--kv-type"), absl::string_view::npos)
      << status;
}

// Every page over shared memory is damaged: refused there, and sent over TCP.
TEST(BitEqualityOnlyTest, ChunksGoOnOverAnotherTransport) {
  struct Damage : PageFaults {
    uint64_t OnSend(const PageHeader& header,
                    const std::vector<absl::Span<const uint8_t>>&) override {
      ++pages;
      return header.payload_checksum ^ 1;
    }
    std::atomic<int> pages = 0;
  } damage;
  LocalClusterOptions options =
      ClusterOptions(Handoff::kShmOrTcp, CpuPath::kAuto, 64);
  options.faults = &damage;
  LocalCluster cluster(options);
  LocalResult result = cluster.Serve({TheRequest()})[0];
  ExpectSameBits(result, Baseline(), "over another transport");
  EXPECT_EQ(result.transfer.transport, "tcp");
  ExpectThatKvMoved(Handoff::kShmOrTcp, result.transfer, kPromptBlocks);
  // What failed once is avoided: only what was posted before was tried there.
  EXPECT_GT(damage.pages, 0);
  EXPECT_LT(damage.pages, kPromptBlocks);
}

TEST(BitEqualityOnlyTest, PreemptedAndRecomputed) {
  struct CountPreemptions : EngineProbe {
    void Preempted() override { ++preempted; }
    int preempted = 0;
  } probe;
  // Room for the prompt and little else: its neighbours grow until somebody
  // has to give way.
  LocalClusterOptions options = ClusterOptions(Handoff::kNone);
  options.blocks = kPromptBlocks + 5;
  options.engine_probe = &probe;
  LocalCluster cluster(options);
  std::vector<GenerateRequest> requests = {
      Request(Text(30, 50), 60), Request(Text(30, 150), 60), TheRequest()};
  std::vector<LocalResult> results = cluster.Serve(requests);
  EXPECT_GT(probe.preempted, 0);
  ExpectSameBits(results[2], Baseline(), "preempted");
}

// What decode made token by token, prefill computes at once.
TEST(BitEqualityOnlyTest, GeneratedAndThenPrefilledAgain) {
  LocalCluster cluster(ClusterOptions(Handoff::kNone));
  const LocalResult& made = Baseline();
  for (int known : {1, 5, kGenerated - 1}) {
    GenerateRequest request = TheRequest();
    request.prompt.insert(request.prompt.end(), made.tokens.begin(),
                          made.tokens.begin() + known);
    request.stop.max_tokens = kGenerated - known;
    request.cache_salt = absl::StrCat(known);  // cold each time
    LocalResult rest = cluster.Serve({request})[0];
    LocalResult want;
    want.tokens.assign(made.tokens.begin() + known, made.tokens.end());
    want.logprobs.assign(made.logprobs.begin() + known, made.logprobs.end());
    ExpectSameBits(rest, want, absl::StrCat("after ", known));
  }
}

// The scalar twin is slow: a shorter prompt, still past one split.
TEST(BitEqualityOnlyTest, TheScalarTwinAgrees) {
  GenerateRequest request = Request(Text(270), 3);
  LocalCluster fast(ClusterOptions(Handoff::kNone));
  LocalCluster scalar(ClusterOptions(Handoff::kShm, CpuPath::kScalar));
  ExpectSameBits(scalar.Serve({request})[0], fast.Serve({request})[0],
                 "scalar");
}

// Where the V row of a token begins: first layer, first head, after its K.
uint64_t RowOfV(int token) {
  const ModelSpec& spec = Model().spec();
  return uint64_t{2} * spec.head_dim * (kBlockTokens + token);
}

// Makes each F16 of a V row 65536 times as large, where that stays finite, by
// flipping its highest exponent bit.
void FlipExponents(absl::Span<uint8_t> page) {
  uint64_t row = RowOfV(3);
  for (int i = 0; i < Model().spec().head_dim; ++i) {
    uint8_t& high = page[row + 2 * i + 1];
    int exponent = high >> 2 & 31;
    if (exponent < 15) high ^= 0x40;
  }
}

// Changes the first page of a transfer on its way; with `consistent` the sender
// announces the checksum of the changed bytes.
class ChangeFirstPage : public PageFaults {
 public:
  explicit ChangeFirstPage(bool consistent) : consistent_(consistent) {}

  uint64_t OnSend(
      const PageHeader& header,
      const std::vector<absl::Span<const uint8_t>>& payload) override {
    if (!consistent_ || sent_++ > 0) return header.payload_checksum;
    std::vector<uint8_t> changed;
    for (auto part : payload) {
      changed.insert(changed.end(), part.begin(), part.end());
    }
    FlipExponents(absl::MakeSpan(changed));
    return BlockHasher(HashSecret("local cluster")).Checksum(changed);
  }

  void OnLanded(const PageHeader& header,
                const std::vector<absl::Span<uint8_t>>& payload) override {
    if (landed_++ > 0) return;
    if (consistent_) {
      FlipExponents(payload[0]);
    } else {
      payload[0][1000] ^= 1;
    }
  }

 private:
  bool consistent_;
  int sent_ = 0;  // touched by one progress thread each
  int landed_ = 0;
};

class FlippedPageTest : public testing::TestWithParam<Handoff> {};

INSTANTIATE_TEST_SUITE_P(Transports, FlippedPageTest,
                         testing::Values(Handoff::kShm, Handoff::kTcp));

struct CountRefusals : HandoffProbe {
  void PageRefused(absl::string_view reason) override {
    ++refused;
    last = std::string(reason);
  }
  int refused = 0;
  std::string last;
};

TEST_P(FlippedPageTest, AFlippedByteIsRefusedAndSentAgain) {
  CountRefusals probe;
  ChangeFirstPage faults(/*consistent=*/false);
  LocalClusterOptions options = ClusterOptions(GetParam());
  options.faults = &faults;
  options.handoff_probe = &probe;
  LocalCluster cluster(options);
  ExpectSameBits(cluster.Serve({TheRequest()})[0], Baseline(), "flipped");
  EXPECT_GE(probe.refused, 1);
}

// Proof that decode reads what arrived: a wrong page that passes every check
// changes what it computes.
TEST_P(FlippedPageTest, AFlippedExponentWithItsChecksumChangesTheLogits) {
  ChangeFirstPage faults(/*consistent=*/true);
  CountRefusals probe;
  LocalClusterOptions options = ClusterOptions(GetParam());
  options.faults = &faults;
  options.handoff_probe = &probe;
  LocalCluster cluster(options);
  LocalResult result = cluster.Serve({TheRequest()})[0];
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(probe.refused, 0) << probe.last;
  // Token 0 is prefill's own; decode's first comes from the changed page.
  EXPECT_EQ(Bits(result.logprobs[0].logprob),
            Bits(Baseline().logprobs[0].logprob));
  EXPECT_NE(Bits(result.logprobs[1].logprob),
            Bits(Baseline().logprobs[1].logprob));
}

}  // namespace
}  // namespace penstock
