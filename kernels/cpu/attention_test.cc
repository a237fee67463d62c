#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/kernel_test_support.h"
#include "kernels/cpu/kv_reference.h"

namespace penstock {
namespace {

constexpr int kDim = 48;
constexpr int kValueDim = 112;  // one group of 64 and a rest
constexpr int kKvHeads = 2;
constexpr int kTokensOfPage = 16;
constexpr KvType kTypes[] = {KvType::kF16, KvType::kBf16, KvType::kFp8,
                             KvType::kInt8, KvType::kInt4};

// Of one sequence, by token and head.
struct KeysAndValues {
  std::vector<float> keys;
  std::vector<float> values;
};

KeysAndValues UsualTokens(int tokens) {
  const size_t rows = size_t(tokens) * kKvHeads;
  return {TestNumbers(1).Vector(rows * kDim),
          TestNumbers(2).Vector(rows * kValueDim)};
}

// A few among usual ones.
KeysAndValues AwkwardTokens(int tokens, TestNumbers& numbers) {
  KeysAndValues all = UsualTokens(tokens);
  for (int i = 0; i < 8; ++i) {
    const int row = numbers.Integer(0, tokens * kKvHeads - 1);
    const std::vector<float> key = AwkwardRows(1, kDim, numbers);
    const std::vector<float> value = AwkwardRows(1, kValueDim, numbers);
    std::copy(key.begin(), key.end(), all.keys.begin() + row * kDim);
    std::copy(value.begin(), value.end(), all.values.begin() + row * kValueDim);
  }
  return all;
}

// Keys and values in pages that lie in no order and are full of NaNs where
// nothing was written.
class Pages {
 public:
  Pages(const KernelTable& kernels, KvType type, const KeysAndValues& all) {
    const int tokens = static_cast<int>(all.keys.size()) / (kKvHeads * kDim);
    layout_ = {.layers = 1,
               .kv_heads = kKvHeads,
               .head_dim = kDim,
               .value_dim = kValueDim,
               .type = type};
    const int count = (tokens + kTokensOfPage - 1) / kTokensOfPage;
    bytes_.assign((count + 3) * page_bytes(), 0xff);
    for (int i = 0; i < count; ++i) {
      blocks_.push_back(i % 2 ? count - i : count + 2 - i);
    }
    std::vector<int> sorted = blocks_;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (int token = 0; token < tokens; ++token) Write(kernels, all, token);
  }

  double Key(int token, int head, int i) const {
    return ReaderOf(token, head).Key(token % kTokensOfPage, i);
  }
  double Value(int token, int head, int i) const {
    return ReaderOf(token, head).Value(token % kTokensOfPage, i);
  }
  const KvLayout& layout() const { return layout_; }
  size_t page_bytes() const { return layout_.block_bytes(); }
  const uint8_t* head_pages(int head) const {
    return bytes_.data() + size_t(head) * layout_.head().bytes;
  }
  const int32_t* blocks() const { return blocks_.data(); }

 private:
  void Write(const KernelTable& kernels, const KeysAndValues& all, int token) {
    const size_t row = size_t(token) * kKvHeads;
    kernels.write_kv(
        {.type = layout_.type,
         .layout = layout_.head(),
         .kv_heads = kKvHeads,
         .head_dim = kDim,
         .value_dim = kValueDim,
         .rotation = {},
         .key = all.keys.data() + row * kDim,
         .value = all.values.data() + row * kValueDim,
         .page = bytes_.data() + blocks_[token / kTokensOfPage] * page_bytes(),
         .slot = token % kTokensOfPage});
  }
  KvHeadReader ReaderOf(int token, int head) const {
    return {layout_,
            head_pages(head) + blocks_[token / kTokensOfPage] * page_bytes()};
  }

  KvLayout layout_;
  std::vector<uint8_t> bytes_;
  std::vector<int32_t> blocks_;
};

// Attention of some queries, each seeing its own tokens, as the forward pass
// does it: split by split, merged in order. [queries][kValueDim]
std::vector<float> Attend(const KernelTable& kernels, const Pages& pages,
                          int head, const std::vector<float>& queries,
                          const std::vector<VisibleRange>& visible,
                          float score_cap = 0) {
  const int count = static_cast<int>(visible.size());
  std::vector<const float*> query(count);
  for (int q = 0; q < count; ++q) query[q] = queries.data() + q * kDim;
  std::vector<float> scores(kMaxQueryTile * kAttentionSplit, NAN);
  std::vector<float> max(2 * count, NAN), sum(max),
      sums(max.size() * kValueDim, NAN);
  std::fill_n(max.begin(), count, -INFINITY);
  std::fill_n(sum.begin(), count, 0.0f);
  std::fill_n(sums.begin(), count * kValueDim, 0.0f);
  auto state = [&](int which) {
    return AttentionState{max.data() + which * count,
                          sum.data() + which * count,
                          sums.data() + which * count * kValueDim};
  };
  AttentionTask task;
  task.type = pages.layout().type;
  task.layout = pages.layout().head();
  task.queries = count;
  task.head_dim = kDim;
  task.value_dim = kValueDim;
  task.score_cap = score_cap;
  task.query = query.data();
  task.visible = visible.data();
  task.pages = pages.head_pages(head);
  task.page_stride = pages.page_bytes();
  task.blocks = pages.blocks();
  task.scratch = scores.data();
  task.state = state(1);
  for (; task.split < 3; ++task.split) {
    const int start = task.split * kAttentionSplit;
    kernels.attend(task);
    for (int q = 0; q < count; ++q) {
      if (visible[q].last <= start) continue;
      if (visible[q].first >= start + kAttentionSplit) continue;
      kernels.merge(state(0), state(1), q, kValueDim);
    }
  }
  std::vector<float> out(count * kValueDim);
  for (int q = 0; q < count; ++q) {
    kernels.finish(state(0), q, kValueDim, out.data() + q * kValueDim);
  }
  return out;
}

void ExpectSoftmax(const Pages& pages, int head, const float* query,
                   const VisibleRange& visible, const float* out,
                   double score_cap = 0) {
  std::vector<double> weight(visible.last - visible.first);
  double max = -INFINITY, sum = 0;
  for (size_t t = 0; t < weight.size(); ++t) {
    const int token = visible.first + static_cast<int>(t);
    for (int i = 0; i < kDim; ++i) {
      weight[t] += query[i] * pages.Key(token, head, i);
    }
    weight[t] = static_cast<float>(weight[t]);  // may be infinite
    if (score_cap != 0) {
      weight[t] = score_cap * std::tanh(weight[t] / score_cap);
    }
    max = std::max(max, weight[t]);
  }
  for (double& w : weight) sum += w = std::exp(w - max);
  for (int i = 0; i < kValueDim; ++i) {
    double expected = 0, size = 1;
    for (size_t t = 0; t < weight.size(); ++t) {
      const int token = visible.first + static_cast<int>(t);
      const double term = weight[t] / sum * pages.Value(token, head, i);
      expected += term;
      size = std::max(size, std::fabs(term));
    }
    if (!std::isfinite(expected)) {
      ASSERT_FALSE(std::isfinite(out[i])) << "dimension " << i;
    } else if (size < 1e36) {  // larger ones may overflow before the division
      ASSERT_NEAR(out[i], expected, 1e-5 * size) << "dimension " << i;
    }
  }
}

TEST(AttentionTest, MatchesASoftmaxInDouble) {
  const std::vector<float> queries = TestNumbers(3).Vector(11 * kDim, -2, 2);
  for (CpuPath path : TestablePaths()) {
    const KernelTable& kernels = *FindKernels(path);
    for (KvType type : kTypes) {
      for (int tokens : {1, 15, 16, 17, 255, 256, 257, 700}) {
        SCOPED_TRACE(testing::Message() << kernels.name << " "
                                        << Traits(type).name << " " << tokens);
        const Pages pages(kernels, type, UsualTokens(tokens));
        const std::vector<float> out =
            Attend(kernels, pages, 1, {queries.begin(), queries.begin() + kDim},
                   {{0, tokens}});
        ExpectSoftmax(pages, 1, queries.data(), {0, tokens}, out.data());
      }
    }
  }
}

// `queries` [visible][kDim] together and alone, on each path: the same numbers,
// and a softmax over what each sees.
void ExpectApart(KvType type, const KeysAndValues& tokens,
                 const std::vector<float>& queries,
                 const std::vector<VisibleRange>& visible, float score_cap) {
  const int count = static_cast<int>(visible.size());
  std::vector<float> reference;
  for (CpuPath path : TestablePaths()) {
    const KernelTable& kernels = *FindKernels(path);
    SCOPED_TRACE(testing::Message()
                 << kernels.name << " " << Traits(type).name);
    const Pages pages(kernels, type, tokens);
    const std::vector<float> together =
        Attend(kernels, pages, 0, queries, visible, score_cap);
    if (reference.empty()) reference = together;
    EXPECT_TRUE(SameNumbers(together, reference));
    for (int q = 0; q < count; ++q) {
      const auto begin = queries.begin() + q * kDim;
      const std::vector<float> alone = Attend(
          kernels, pages, 0, {begin, begin + kDim}, {visible[q]}, score_cap);
      const auto slice = together.begin() + q * kValueDim;
      EXPECT_TRUE(SameNumbers(alone, {slice, slice + kValueDim}))
          << "query " << q;
      ExpectSoftmax(pages, 0, queries.data() + q * kDim, visible[q],
                    alone.data(), score_cap);
    }
  }
}

void ExpectApartInAllTypes(const std::vector<VisibleRange>& visible,
                           float score_cap) {
  const std::vector<float> queries =
      TestNumbers(4).Vector(visible.size() * kDim, -3, 3);
  for (KvType type : kTypes) {
    ExpectApart(type, UsualTokens(513), queries, visible, score_cap);
  }
}

// Queries that see different lengths, some in splits that others do not reach.
TEST(AttentionTest, QueriesOfATileDoNotMeet) {
  ExpectApartInAllTypes({{0, 1},
                         {0, 5},
                         {0, 16},
                         {0, 250},
                         {0, 256},
                         {0, 257},
                         {0, 258},
                         {0, 300},
                         {0, 512},
                         {0, 513},
                         {0, 17}},
                        0);
}

// Windows that begin in the middle of pages and splits, and behind splits.
TEST(AttentionTest, SeesOnlyWhatIsInTheWindow) {
  ExpectApartInAllTypes({{0, 1},
                         {3, 19},
                         {15, 16},
                         {16, 17},
                         {241, 257},
                         {255, 513},
                         {256, 272},
                         {250, 300},
                         {300, 513},
                         {512, 513}},
                        0);
}

TEST(AttentionTest, CapsScores) {
  ExpectApartInAllTypes({{0, 40}, {20, 300}, {0, 513}}, 5);
}

// What is NaN or infinite reaches the queries that see it, and no others.
TEST(AttentionTest, AwkwardTokensAndQueriesSpoilNoOthers) {
  for (int seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    TestNumbers numbers(20 + seed);
    const int tokens = numbers.Integer(20, 600);
    std::vector<VisibleRange> visible;
    for (int q = numbers.Integer(1, 13); q > 0; --q) {
      // Beside each other, as those of a chunk are.
      const int last = std::max(1, tokens - q);
      visible.push_back({std::max(0, last - numbers.Integer(1, 400)), last});
    }
    const std::vector<float> queries =
        AwkwardRows(static_cast<int>(visible.size()), kDim, numbers);
    const KeysAndValues all = AwkwardTokens(tokens, numbers);
    for (KvType type : kTypes) {
      ExpectApart(type, all, queries, visible, seed % 2 == 0 ? 0 : 5);
    }
  }
}

TEST(AttentionTest, RotatesHalvesAndScalesQueries) {
  constexpr int kRope = 32;
  std::vector<float> cosine(kRope / 2), sine(kRope / 2);
  for (int i = 0; i < kRope / 2; ++i) {
    cosine[i] = std::cos(0.1f * i);
    sine[i] = std::sin(0.1f * i);
  }
  const std::vector<float> query = TestNumbers(5).Vector(2 * kDim);
  for (CpuPath path : TestablePaths()) {
    std::vector<float> rotated = query;
    FindKernels(path)->rotate_query({.heads = 2,
                                     .head_dim = kDim,
                                     .rotation = {.dim = kRope,
                                                  .cosine = cosine.data(),
                                                  .sine = sine.data()},
                                     .scale = 0.5f,
                                     .query = rotated.data()});
    for (int head = 0; head < 2; ++head) {
      const float* from = query.data() + head * kDim;
      const float* to = rotated.data() + head * kDim;
      for (int i = 0; i < kRope / 2; ++i) {
        const double a = from[i], b = from[i + kRope / 2];
        EXPECT_NEAR(to[i], 0.5 * (a * cosine[i] - b * sine[i]), 1e-6);
        EXPECT_NEAR(to[i + kRope / 2], 0.5 * (b * cosine[i] + a * sine[i]),
                    1e-6);
      }
      for (int i = kRope; i < kDim; ++i) EXPECT_EQ(to[i], 0.5f * from[i]);
    }
  }
}

}  // namespace
}  // namespace penstock
