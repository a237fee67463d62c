// Every kernel of the CPU backend, alone and on one thread:
//   kernel_roofline [WORD]
// prints, for each instruction set of this machine and each kernel whose name
// has WORD in it, its time, the bytes and operations of a call, and the share
// that the least time the machine needs for them is of that. Shapes are those
// of a model 576 wide (768 for types in blocks of 256). What "few rows" read
// lies in memory, far more than caches hold; all other operands lie in caches
// and count as operations only.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/model/kv_layout.h"
#include "kernels/cpu/huge_buffer.h"
#include "kernels/cpu/kernel_test_support.h"
#include "kernels/cpu/machine_limits.h"
#include "kernels/cpu/weight_packer.h"

namespace penstock {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kHidden = 576;
constexpr int kWideHidden = 768;
constexpr int kFeedForward = 1536;
constexpr int kHeads = 9;
constexpr int kKvHeads = 3;
constexpr int kHeadDim = 64;
constexpr int kManyColumns = 49152;  // of the output head
constexpr int kManyRows = 256;
constexpr float kEpsilon = 1e-5f;

struct Case {
  std::string name;
  // One call; the count lets it go on through memory.
  std::function<void(const KernelTable& kernels, int call)> run;
  StepCost cost;  // of a call; bytes of memory only
};

// A case with all that it works on.
using Cases = std::vector<Case>;

// Blocks of an input row that a matrix multiplies twice by default.
int Refined(int depth) {
  return InputPrecision().RefinedOf(depth / kScaleDepth);
}

// Random weights and inputs, packed.
struct Product {
  Product(TensorType type, int columns, int depth, int rows)
      : tensor(type, columns, depth, 1), x(rows, depth, Refined(depth)) {
    std::vector<ColumnSource> sources;
    for (int row = 0; row < columns; ++row) {
      sources.push_back({&tensor.view, row});
    }
    const WeightPacker packer(std::move(sources));
    weights = packer.shape();
    bytes.resize(packer.bytes());
    for (int panel = 0; panel < weights.panels; ++panel) {
      packer.PackPanel(panel, bytes.data() + panel * weights.panel_bytes);
    }
    y.resize(size_t(rows) * columns);
    const std::vector<float> values =
        TestNumbers(2).Vector(size_t(rows) * depth);
    for (int row = 0; row < rows; ++row) {
      ScalarKernels().quantize(values.data() + size_t(row) * depth, 0, depth,
                               x.view, row);
      ScalarKernels().choose(x.view, row);
    }
  }

  // So many copies that together no cache holds them, as a model's lie.
  void Copy() {
    const size_t copies = (size_t{128} << 20) / bytes.size() + 1;
    auto buffer = HugeBuffer::Create(copies * bytes.size());
    CHECK(buffer.ok()) << buffer.status();
    memory = *std::move(buffer);
    for (size_t i = 0; i < copies; ++i) {
      std::copy(bytes.begin(), bytes.end(), memory.data() + i * bytes.size());
    }
  }
  PanelMatrix Weights(int call) const {
    PanelMatrix matrix = weights;
    const size_t copies = memory.size() / bytes.size();
    matrix.data = copies == 0 ? bytes.data()
                              : memory.data() + call % copies * bytes.size();
    return matrix;
  }

  TestTensor tensor;
  TestActivations x;
  PanelMatrix weights;  // without data
  std::vector<uint8_t> bytes;
  HugeBuffer memory;
  std::vector<float> y;
};

// Matrix products: a few rows by weights in memory, many by those of a layer.
void AddProducts(Cases& cases) {
  for (TensorType type :
       {TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ8_0,
        TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K,
        TensorType::kBF16, TensorType::kF16}) {
    const int depth =
        Traits(type).block_elements == 256 ? kWideHidden : kHidden;
    for (int rows : {1, 8, kManyRows}) {
      const bool few = rows < kManyRows;
      // Made at its first call: all together would take gigabytes.
      auto product = std::make_shared<std::unique_ptr<Product>>();
      const int columns = few ? kManyColumns : 2 * kFeedForward;
      auto run = [=](const KernelTable& kernels, int call) {
        if (*product == nullptr) {
          *product = std::make_unique<Product>(type, columns, depth, rows);
          if (few) (*product)->Copy();
        }
        Product& made = **product;
        const PanelMatrix weights = made.Weights(call);
        kernels.gemm({.weights = &weights,
                      .x = &made.x.view,
                      .last_row = rows,
                      .last_panel = weights.panels,
                      .y = made.y.data(),
                      .y_stride = size_t(columns)});
      };
      // The layout alone.
      const TestTensor one(type, 1, depth, 1);
      const PanelMatrix shape = WeightPacker({{&one.view, 0}}).shape();
      StepCost cost;
      if (few) cost.weight_bytes = shape.panel_bytes * columns / kPanelColumns;
      const uint64_t twice =
          TakesQuants(shape.format) ? Refined(depth) * kScaleDepth : 0;
      cost.OpsOf(shape.format) = 2 * rows * columns * (depth + twice);
      cases.push_back({absl::StrFormat("gemm %s, %d rows by %d x %d",
                                       std::string(Traits(type).name), rows,
                                       depth, columns),
                       run, cost});
    }
  }
}

// Pages of many sequences of one split each, far more than caches hold.
struct Pages {
  explicit Pages(KvType type) {
    layout = {.layers = 1,
              .kv_heads = kKvHeads,
              .head_dim = kHeadDim,
              .value_dim = kHeadDim,
              .type = type};
    blocks.resize((size_t{64} << 20) / layout.block_bytes());
    for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = i;
    // Finite in every type: small codes, and scales of one.
    bytes.assign(blocks.size() * layout.block_bytes(), 0x11);
  }

  KvLayout layout;
  std::vector<int32_t> blocks;
  std::vector<uint8_t> bytes;
};

void AddAttention(KvType type, int queries, Cases& cases) {
  auto pages = std::make_shared<std::unique_ptr<Pages>>();
  auto run = [=](const KernelTable& kernels, int call) {
    if (*pages == nullptr) *pages = std::make_unique<Pages>(type);
    const Pages& made = **pages;
    static const std::vector<float> query =
        TestNumbers(3).Vector(size_t{kMaxQueryTile} * kHeadDim);
    static std::vector<float> scratch(size_t{kMaxQueryTile} * kAttentionSplit);
    static std::vector<float> out(size_t{kMaxQueryTile} * (kHeadDim + 2));
    const float* pointers[kMaxQueryTile];
    VisibleRange visible[kMaxQueryTile];
    for (int q = 0; q < queries; ++q) {
      pointers[q] = query.data() + q * kHeadDim;
      visible[q] = {0, kAttentionSplit};
    }
    constexpr int kBlocks = kAttentionSplit / kBlockTokens;
    const int head = call % kKvHeads;
    const size_t sequence =
        size_t(call / kKvHeads) % (made.blocks.size() / kBlocks);
    kernels.attend(
        {.type = type,
         .layout = made.layout.head(),
         .queries = queries,
         .head_dim = kHeadDim,
         .value_dim = kHeadDim,
         .query = pointers,
         .visible = visible,
         .pages = made.bytes.data() + head * size_t{made.layout.head().bytes},
         .page_stride = made.layout.block_bytes(),
         .blocks = made.blocks.data() + sequence * kBlocks,
         .scratch = scratch.data(),
         .state = {.max = out.data(),
                   .sum = out.data() + kMaxQueryTile,
                   .out = out.data() + 2 * kMaxQueryTile}});
  };
  const KvLayout layout = Pages(type).layout;
  StepCost cost;
  cost.kv_bytes =
      layout.head().bytes * uint64_t{kAttentionSplit} / kBlockTokens;
  cost.float_ops = uint64_t{2} * queries * kAttentionSplit * 2 * kHeadDim;
  cases.push_back({absl::StrFormat("attend %s, %d queries by %d positions",
                                   Traits(type).name, queries, kAttentionSplit),
                   run, cost});
}

void AddWriteKv(KvType type, Cases& cases) {
  auto run = [=](const KernelTable& kernels, int call) {
    static const std::vector<float> row =
        TestNumbers(4).Vector(2 * kKvHeads * kHeadDim);
    static const std::vector<float> turns(kHeadDim, 0.5f);
    const KvLayout layout = {.layers = 1,
                             .kv_heads = kKvHeads,
                             .head_dim = kHeadDim,
                             .value_dim = kHeadDim,
                             .type = type};
    static std::vector<uint8_t> page(size_t{1} << 16);
    kernels.write_kv({.type = type,
                      .layout = layout.head(),
                      .kv_heads = kKvHeads,
                      .head_dim = kHeadDim,
                      .value_dim = kHeadDim,
                      .rotation = {.dim = kHeadDim,
                                   .cosine = turns.data(),
                                   .sine = turns.data()},
                      .key = row.data(),
                      .value = row.data() + kKvHeads * kHeadDim,
                      .page = page.data(),
                      .slot = call % kBlockTokens});
  };
  StepCost cost;
  cost.float_ops = uint64_t{3} * kKvHeads * kHeadDim;  // RoPE alone
  cases.push_back({absl::StrCat("write_kv ", Traits(type).name), run, cost});
}

// Work on one row that lies in the cache.
void AddRows(Cases& cases) {
  auto in =
      std::make_shared<std::vector<float>>(TestNumbers(5).Vector(kFeedForward));
  auto other = std::make_shared<std::vector<float>>(*in);
  auto out = std::make_shared<TestActivations>(1, kFeedForward, 0);
  auto add = [&](const std::string& name, uint64_t ops, auto call) {
    StepCost cost;
    cost.float_ops = ops;
    cases.push_back({name,
                     [=](const KernelTable& kernels, int) {
                       call(kernels, in->data(), other->data(), out->view);
                     },
                     cost});
  };
  add("normalize 576", 5 * kHidden,
      [](const KernelTable& kernels, float* x, float* gain, Activations to) {
        to.depth = kHidden;
        kernels.normalize(x, gain, kEpsilon, to, 0);
      });
  add("quantize 1536", kFeedForward,
      [](const KernelTable& kernels, float* x, float*, const Activations& to) {
        kernels.quantize(x, 0, kFeedForward, to, 0);
      });
  add("normalize_in_place 576", 4 * kHidden,
      [](const KernelTable& kernels, float* x, float* gain,
         const Activations&) {
        kernels.normalize_in_place(x, gain, kEpsilon, kHidden);
      });
  add("add_scaled 576", 2 * kHidden,
      [](const KernelTable& kernels, float* x, float* to, const Activations&) {
        kernels.add_scaled(x, 1e-6f, kHidden, to);
      });
  add("rotate_query 9 x 64", 4 * kHeads * kHeadDim,
      [](const KernelTable& kernels, float* x, float* turns,
         const Activations&) {
        kernels.rotate_query(
            {.heads = kHeads,
             .head_dim = kHeadDim,
             .rotation = {.dim = kHeadDim, .cosine = turns, .sine = turns},
             .scale = 0.125f,
             .query = x});
      });
}

// Seconds of a call: the median of samples of some milliseconds.
double TimeOf(const Case& one, const KernelTable& kernels) {
  constexpr double kSample = 4e-3;
  constexpr int kSamples = 7;
  int call = 0;
  auto sample = [&](int calls) {
    const auto start = SteadyClock::now();
    for (int i = 0; i < calls; ++i) one.run(kernels, call++);
    return std::chrono::duration<double>(SteadyClock::now() - start).count() /
           calls;
  };
  sample(1);
  const double first = sample(1);
  const int calls = std::max(1, static_cast<int>(kSample / first));
  std::vector<double> seconds;
  for (int i = 0; i < kSamples; ++i) seconds.push_back(sample(calls));
  std::sort(seconds.begin(), seconds.end());
  return seconds[kSamples / 2];
}

int Main(const std::string& word) {
  ThreadPool pool({.threads = 1});
  for (CpuPath path : TestablePaths()) {
    const KernelTable& kernels = *FindKernels(path);
    const auto limits = MeasureMachineLimits(kernels, pool);
    if (!limits.ok()) {
      std::fprintf(stderr, "%s\n", limits.status().ToString().c_str());
      return 1;
    }
    std::printf(
        "\n%s, one thread. Limits: read %.1f GB/s, int8 %.0f, bf16 %.0f, f32 "
        "%.0f G operations/s\n%-38s %10s %9s %9s %7s %7s  share\n",
        kernels.name, limits->read_bytes_per_s / 1e9,
        limits->int8_ops_per_s / 1e9, limits->bfloat16_ops_per_s / 1e9,
        limits->float_ops_per_s / 1e9, "", "us", "kB", "kop", "GB/s", "Gop/s");
    Cases cases;
    AddProducts(cases);
    for (KvType type : {KvType::kF16, KvType::kBf16, KvType::kFp8,
                        KvType::kInt8, KvType::kInt4}) {
      AddAttention(type, kHeads / kKvHeads, cases);
      AddAttention(type, 2 * kHeads / kKvHeads, cases);
      AddWriteKv(type, cases);
    }
    AddRows(cases);
    for (Case& one : cases) {
      if (one.name.find(word) == std::string::npos) continue;
      const double seconds = TimeOf(one, kernels);
      const double bytes = static_cast<double>(one.cost.bytes());
      const double ops = static_cast<double>(one.cost.ops());
      const LeastTime least = LeastTimeOf(one.cost, *limits);
      std::printf("%-38s %10.2f %9.1f %9.1f %7.1f %7.1f  %3.0f%% %s\n",
                  one.name.c_str(), seconds * 1e6, bytes / 1e3, ops / 1e3,
                  bytes / seconds / 1e9, ops / seconds / 1e9,
                  least.seconds() / seconds * 100,
                  least.memory_s > least.compute_s ? "read" : "ops");
      std::fflush(stdout);
      one.run = nullptr;  // frees what it works on
    }
  }
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  return penstock::Main(argc > 1 ? argv[1] : "");
}
