#include "common/model/kv_layout.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

// The shape of SmolLM2-135M, whose sizes are worked out by hand below.
ModelSpec Spec() {
  ModelSpec spec;
  spec.layers = 30;
  spec.heads = 9;
  spec.kv_heads = 3;
  spec.head_dim = 64;
  spec.value_dim = 64;
  return spec;
}

TEST(KvLayoutTest, Sizes) {
  KvLayout half = KvLayout::For(Spec(), KvType::kF16);
  // K and V, 3 heads of 64, 16 tokens, 2 bytes.
  EXPECT_EQ(half.layer_bytes(), 12288u);
  EXPECT_EQ(half.block_bytes(), 368640u);
  EXPECT_EQ(KvLayout::For(Spec(), KvType::kF32).block_bytes(), 737280u);
}

// Bytes of one head: 64 dimensions of 16 tokens, K and V; scales of 2 bytes,
// one for 64 dimensions (int8) or 32 (int4).
TEST(KvLayoutTest, SizesOfSmallTypes) {
  const auto head_bytes = [](KvType type) {
    return KvLayout::For(Spec(), type).head().bytes;
  };
  EXPECT_EQ(head_bytes(KvType::kF32), 8192u);
  EXPECT_EQ(head_bytes(KvType::kF16), 4096u);
  EXPECT_EQ(head_bytes(KvType::kBf16), 4096u);
  EXPECT_EQ(head_bytes(KvType::kFp8), 2048u);
  EXPECT_EQ(head_bytes(KvType::kInt8), 2048u + 2 * 32);
  EXPECT_EQ(head_bytes(KvType::kInt4), 1024u + 4 * 32);
  EXPECT_EQ(KvLayout::For(Spec(), KvType::kInt8).block_bytes(),
            uint64_t{2112} * 3 * 30);
}

// Ragged widths: a last group that is not full, and a last block of nibbles
// that is not.
TEST(KvLayoutTest, PartsOfAHead) {
  ModelSpec spec = Spec();
  spec.head_dim = 80;
  spec.value_dim = 48;
  const KvHeadLayout nibbles = KvLayout::For(spec, KvType::kInt4).head();
  EXPECT_EQ(nibbles.key_scales, 640u);          // 80 / 2 * 16
  EXPECT_EQ(nibbles.values, 640u + 96);         // 3 groups
  EXPECT_EQ(nibbles.value_scales, 736u + 512);  // 64 / 2 * 16
  EXPECT_EQ(nibbles.bytes, 1248u + 64);         // 2 groups
  const KvHeadLayout bytes = KvLayout::For(spec, KvType::kInt8).head();
  EXPECT_EQ(bytes.key_scales, 1280u);
  EXPECT_EQ(bytes.values, 1280u + 64);  // 2 groups
  EXPECT_EQ(bytes.value_scales, 1344u + 768);
  EXPECT_EQ(bytes.bytes, 2112u + 32);
}

TEST(KvLayoutTest, TypesHaveNames) {
  for (const KvTypeTraits& traits : kKvTypes) {
    EXPECT_EQ(&Traits(traits.type), &traits);
    const auto parsed = ParseKvType(traits.name);
    ASSERT_TRUE(parsed.ok()) << traits.name;
    EXPECT_EQ(*parsed, traits.type);
  }
  const absl::Status unknown = ParseKvType("int3").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(unknown.message(),
            "kv-type is \"int3\"; use one of f16, f32, bf16, fp8, int8, int4");
}

TEST(KvLayoutTest, ValuesNarrowerThanKeys) {
  ModelSpec spec = Spec();
  spec.kv_heads = 1;
  spec.head_dim = 576;
  spec.value_dim = 512;
  KvLayout layout = KvLayout::For(spec, KvType::kF16);
  EXPECT_EQ(layout.key_bytes(), 18432u);  // 576 dimensions, 16 tokens
  EXPECT_EQ(layout.layer_bytes(), 18432u + 16384u);
}

TEST(KvLayoutTest, SizesBeyond32Bits) {
  ModelSpec spec = Spec();
  spec.layers = 1000;
  spec.kv_heads = 1024;
  spec.head_dim = 512;
  spec.value_dim = 512;
  EXPECT_EQ(KvLayout::For(spec, KvType::kF32).block_bytes(),
            uint64_t{67108864} * 1000);
}

TEST(KvLayoutTest, SegmentsOfARange) {
  KvLayout layout = KvLayout::For(Spec(), KvType::kF16);
  std::vector<Segment> whole = layout.Segments(0, {0, 30});
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].offset, 0u);
  EXPECT_EQ(whole[0].length, 368640u);
  std::vector<Segment> part = layout.Segments(2, {5, 7});
  ASSERT_EQ(part.size(), 1u);
  EXPECT_EQ(part[0].offset, 2 * 368640u + 5 * 12288u);
  EXPECT_EQ(part[0].length, 2 * 12288u);
  EXPECT_TRUE(layout.Segments(2, {7, 7}).empty());
}

// Over any cut into layer ranges, each byte of a block is named exactly once,
// and blocks do not touch each other.
TEST(KvLayoutTest, SegmentsTileTheArena) {
  KvLayout layout{.layers = 5, .kv_heads = 2, .head_dim = 4, .value_dim = 4};
  for (int first_cut = 0; first_cut <= 5; ++first_cut) {
    for (int second_cut = first_cut; second_cut <= 5; ++second_cut) {
      std::vector<int> named(3 * layout.block_bytes());
      for (BlockIndex block = 0; block < 3; ++block) {
        for (LayerRange range :
             {LayerRange{0, first_cut}, LayerRange{first_cut, second_cut},
              LayerRange{second_cut, 5}}) {
          for (Segment s : layout.Segments(block, range)) {
            ASSERT_LE(s.offset + s.length, named.size());
            for (uint64_t i = 0; i < s.length; ++i) ++named[s.offset + i];
          }
        }
      }
      EXPECT_EQ(std::set<int>(named.begin(), named.end()), std::set<int>{1});
    }
  }
}

TEST(KvLayoutTest, FarBlocksDoNotWrap) {
  KvLayout layout = KvLayout::For(Spec(), KvType::kF32);
  EXPECT_EQ(layout.Segments(1 << 20, {0, 1})[0].offset, uint64_t{737280} << 20);
}

TEST(KvLayoutTest, IdNamesEveryField) {
  const KvLayout base{
      .layers = 5, .kv_heads = 2, .head_dim = 4, .value_dim = 4};
  std::vector<KvLayout> layouts(11, base);
  layouts[1].layers = 6;
  layouts[2].kv_heads = 4;
  layouts[3].head_dim = 2;
  layouts[4].type = KvType::kF32;
  layouts[5].arrangement = 2;
  layouts[6].value_dim = 2;
  layouts[7].type = KvType::kBf16;  // as large as F16
  layouts[8].type = KvType::kFp8;
  layouts[9].type = KvType::kInt8;
  layouts[10].type = KvType::kInt4;
  std::set<LayoutId> ids;
  for (const KvLayout& layout : layouts) ids.insert(layout.id());
  EXPECT_EQ(ids.size(), layouts.size());
  EXPECT_EQ(KvLayout(base).id(), base.id());
}

TEST(KvLayoutDeathTest, RangesLieWithin) {
  KvLayout layout{.layers = 5, .kv_heads = 2, .head_dim = 4, .value_dim = 4};
  EXPECT_DEATH(layout.Segments(0, {0, 6}), "CHECK failed");
  EXPECT_DEATH(layout.Segments(0, {3, 2}), "CHECK failed");
  EXPECT_DEATH(layout.Segments(-1, {0, 1}), "CHECK failed");
}

}  // namespace
}  // namespace penstock
