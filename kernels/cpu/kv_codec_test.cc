#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/fp8.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/kernel_test_support.h"
#include "kernels/cpu/kv_reference.h"

namespace penstock {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr KvType kTypes[] = {KvType::kF16, KvType::kBf16, KvType::kFp8,
                             KvType::kInt8, KvType::kInt4};

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Equal with their signs, or both NaN.
bool Same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

// Every number of a type, with its neighbours, the middle to the next number
// and that one's neighbours; and what lies outside.
std::vector<float> Corners(KvType type) {
  std::vector<float> corners = {0,
                                -0.0f,
                                kInfinity,
                                -kInfinity,
                                std::nanf(""),
                                std::numeric_limits<float>::max(),
                                std::numeric_limits<float>::denorm_min(),
                                1e-20f,
                                -1e-20f};
  const uint32_t count = 1u << Traits(type).bits;
  for (uint32_t code = 0; code + 1 < count; ++code) {
    const double here = KvNumber(type, code);
    const double next = KvNumber(type, code + 1);
    for (double x : {here, (here + next) / 2}) {
      const float value = static_cast<float>(x);
      corners.insert(corners.end(), {value, std::nextafter(value, kInfinity),
                                     std::nextafter(value, -kInfinity)});
    }
  }
  return corners;
}

TEST(Fp8Test, EveryCodeIsItsDefinition) {
  for (int code = 0; code < 256; ++code) {
    EXPECT_TRUE(Same(Fp8ToFloat(static_cast<uint8_t>(code)),
                     KvNumber(KvType::kFp8, code)))
        << code;
  }
  EXPECT_EQ(Fp8ToFloat(0x01), 0x1p-9f);
  EXPECT_EQ(Fp8ToFloat(0x08), 0x1p-6f);
  EXPECT_EQ(Fp8ToFloat(0x38), 1.0f);
  EXPECT_EQ(Fp8ToFloat(0xc4), -3.0f);
  EXPECT_EQ(Fp8ToFloat(0x7e), 448.0f);
  EXPECT_TRUE(std::isnan(Fp8ToFloat(0x7f)));
  EXPECT_TRUE(std::isnan(Fp8ToFloat(0xff)));
}

TEST(Fp8Test, RoundsToTheNearest) {
  for (float x : Corners(KvType::kFp8)) {
    EXPECT_TRUE(Same(Fp8ToFloat(FloatToFp8(x)), RoundToKvType(KvType::kFp8, x)))
        << x;
  }
  TestNumbers numbers(1);
  for (int i = 0; i < 200000; ++i) {
    const float x = FromBits(numbers.Bits());
    ASSERT_TRUE(Same(Fp8ToFloat(FloatToFp8(x)), RoundToKvType(KvType::kFp8, x)))
        << x;
  }
}

TEST(Bfloat16Test, RoundsToTheNearest) {
  TestNumbers numbers(2);
  for (int i = 0; i < 200000; ++i) {
    float x = FromBits(numbers.Bits());
    if (i % 3 == 0) x = FromBits((numbers.Bits() & 0xffff0000u) | 0x8000);
    ASSERT_TRUE(Same(Bfloat16ToFloat(FloatToBfloat16(x)),
                     RoundToKvType(KvType::kBf16, x)))
        << x;
  }
}

struct Shape {
  int key_dim;
  int value_dim;
};
constexpr Shape kShapes[] = {
    {16, 16}, {64, 64}, {48, 112}, {576, 512}, {80, 48}};

// One page of two heads in which one slot is written.
class Written {
 public:
  Written(const KernelTable& kernels, KvType type, Shape shape, int slot,
          std::vector<float> keys, std::vector<float> values)
      : keys_(std::move(keys)), values_(std::move(values)) {
    layout_ = {.layers = 1,
               .kv_heads = 2,
               .head_dim = shape.key_dim,
               .value_dim = shape.value_dim,
               .type = type};
    page_.assign(layout_.layer_bytes(), 0xff);
    kernels.write_kv({.type = type,
                      .layout = layout_.head(),
                      .kv_heads = 2,
                      .head_dim = shape.key_dim,
                      .value_dim = shape.value_dim,
                      .rotation = {},
                      .key = keys_.data(),
                      .value = values_.data(),
                      .page = page_.data(),
                      .slot = slot});
  }
  KvHeadReader head(int head) const {
    return {layout_, page_.data() + head * layout_.head().bytes};
  }
  const std::vector<uint8_t>& page() const { return page_; }

 private:
  const std::vector<float> keys_, values_;
  KvLayout layout_;
  std::vector<uint8_t> page_;
};

// The elements of one group of a vector: nearest to x, the scale as documented.
void ExpectNearest(KvType type, const std::vector<float>& x,
                   const std::vector<double>& numbers, double scale) {
  const float most = *std::max_element(x.begin(), x.end());
  const float least = *std::min_element(x.begin(), x.end());
  const double magnitude = std::max<double>(most, -least);
  if (magnitude < 0x1p-100) {
    EXPECT_EQ(scale, 0);
    return;
  }
  const double steps = type == KvType::kInt8 ? 127 : 8;
  // One more or less of BF16's last place would not do.
  EXPECT_GE(std::abs(scale) * steps, magnitude * (1 - 1e-7));
  EXPECT_LT(std::abs(scale) * steps, magnitude * (1 + 0x1p-7 + 1e-7));
  const bool negative = type == KvType::kInt4 && most > -least;
  EXPECT_EQ(std::signbit(scale), negative);
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = x[i] / scale;
    if (type == KvType::kInt4 && exact > 7) {
      EXPECT_EQ(numbers[i], 7);
    } else {
      EXPECT_LE(std::abs(exact - numbers[i]), 0.5 + 1e-5);
    }
  }
}

template <class Number, class Scale>
void ExpectVector(KvType type, const float* x, int dim, Number number,
                  Scale scale) {
  const int group = Traits(type).scale_group;
  if (group == 0) {
    for (int i = 0; i < dim; ++i) {
      EXPECT_TRUE(Same(number(i), RoundToKvType(type, x[i]))) << x[i];
    }
    return;
  }
  for (int at = 0; at < dim; at += group) {
    const int end = std::min(dim, at + group);
    const std::vector<float> part(x + at, x + end);
    if (!std::all_of(part.begin(), part.end(),
                     [](float v) { return std::isfinite(v); })) {
      EXPECT_TRUE(std::isnan(scale(at)));
      continue;
    }
    std::vector<double> numbers;
    for (int i = at; i < end; ++i) numbers.push_back(number(i));
    ExpectNearest(type, part, numbers, scale(at));
  }
}

// Writes with every path and holds the page to the definition; bytes that were
// not to be written stay.
void ExpectWritten(KvType type, Shape shape, const std::vector<float>& keys,
                   const std::vector<float>& values) {
  const int slot = 11;
  std::vector<uint8_t> reference;
  for (CpuPath path : TestablePaths()) {
    const KernelTable& kernels = *FindKernels(path);
    SCOPED_TRACE(testing::Message()
                 << kernels.name << " " << Traits(type).name << " "
                 << shape.key_dim << " " << shape.value_dim);
    const Written written(kernels, type, shape, slot, keys, values);
    if (reference.empty()) reference = written.page();
    EXPECT_EQ(written.page(), reference);
    for (int head = 0; head < 2; ++head) {
      const KvHeadReader reader = written.head(head);
      ExpectVector(
          type, keys.data() + head * shape.key_dim, shape.key_dim,
          [&](int i) { return reader.KeyNumber(slot, i); },
          [&](int i) { return reader.KeyScale(slot, i); });
      ExpectVector(
          type, values.data() + head * shape.value_dim, shape.value_dim,
          [&](int i) { return reader.ValueNumber(slot, i); },
          [&](int i) { return reader.ValueScale(slot, i); });
    }
  }
}

TEST(KvCodecTest, WritesTheNearestNumbers) {
  for (KvType type : kTypes) {
    TestNumbers numbers(7);
    for (const Shape& shape : kShapes) {
      for (float size : {1.0f, 300.0f, 1e-3f}) {
        ExpectWritten(type, shape,
                      numbers.Vector(2 * shape.key_dim, -size, size),
                      numbers.Vector(2 * shape.value_dim, -size, 2 * size));
      }
    }
  }
}

// Among usual numbers, and by themselves.
TEST(KvCodecTest, WritesWhatIsFarOut) {
  const Shape shape = {64, 112};
  for (KvType type : kTypes) {
    TestNumbers numbers(8);
    for (float x : AwkwardNumbers()) {
      std::vector<float> keys = numbers.Vector(2 * shape.key_dim);
      std::vector<float> values = numbers.Vector(2 * shape.value_dim);
      keys[numbers.Bits() % keys.size()] = x;
      values[numbers.Bits() % values.size()] = x;
      ExpectWritten(type, shape, keys, values);
      ExpectWritten(type, shape, std::vector<float>(keys.size(), x),
                    std::vector<float>(values.size(), x));
    }
  }
}

TEST(KvCodecTest, PathsRoundAllCornersAlike) {
  const Shape shape = {1024, 16};
  for (KvType type : {KvType::kBf16, KvType::kFp8}) {
    const std::vector<float> corners = Corners(type);
    const std::vector<float> values(2 * shape.value_dim);
    for (size_t at = 0; at < corners.size(); at += 2 * shape.key_dim) {
      // BF16 has many: a part of them.
      if (at > 0 && type == KvType::kBf16 && at % 16 != 0) continue;
      std::vector<float> keys(2 * shape.key_dim);
      const size_t count = std::min(keys.size(), corners.size() - at);
      std::copy_n(corners.begin() + at, count, keys.begin());
      ExpectWritten(type, shape, keys, values);
    }
  }
}

// Attention to one token is the token's value itself: every code comes back.
TEST(KvCodecTest, ReadsEveryCode) {
  for (KvType type : {KvType::kFp8, KvType::kInt8, KvType::kInt4}) {
    const KvLayout layout = {.layers = 1,
                             .kv_heads = 1,
                             .head_dim = 16,
                             .value_dim = 256,
                             .type = type};
    const KvHeadLayout head = layout.head();
    std::vector<uint8_t> page(layout.block_bytes());
    for (int i = 0; i < (type == KvType::kInt4 ? 128 : 256); ++i) {
      page[head.values + i] =
          static_cast<uint8_t>(type == KvType::kInt4 ? i * 17 : i);
    }
    for (uint32_t at = head.value_scales; at < head.bytes; at += 2) {
      const uint16_t scale = FloatToBfloat16(-0.75f);
      std::memcpy(page.data() + at, &scale, 2);
    }
    const KvHeadReader reader(layout, page.data());
    for (CpuPath path : TestablePaths()) {
      const KernelTable& kernels = *FindKernels(path);
      const std::vector<float> query(16);
      const float* queries = query.data();
      const VisibleRange visible = {0, 1};
      const int32_t block = 0;
      std::vector<float> scratch(kMaxQueryTile * kAttentionSplit);
      float max, sum;
      std::vector<float> out(256);
      kernels.attend({.type = type,
                      .layout = head,
                      .queries = 1,
                      .head_dim = 16,
                      .value_dim = 256,
                      .query = &queries,
                      .visible = &visible,
                      .pages = page.data(),
                      .page_stride = page.size(),
                      .blocks = &block,
                      .scratch = scratch.data(),
                      .state = {&max, &sum, out.data()}});
      ASSERT_EQ(sum, 1);
      for (int i = 0; i < 256; ++i) {
        const double expected = reader.Value(0, i);
        EXPECT_TRUE(std::isnan(expected) ? std::isnan(out[i])
                                         : out[i] == expected)
            << kernels.name << " " << Traits(type).name << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace penstock
