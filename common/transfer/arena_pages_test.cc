#include "common/transfer/arena_pages.h"

#include <cstdint>
#include <vector>

#include "common/transfer/kv_transport.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

KvLayout Layout() {
  KvLayout layout;
  layout.layers = 3;
  layout.kv_heads = 2;
  layout.head_dim = 4;
  layout.value_dim = 4;
  return layout;
}

TEST(ArenaPagesTest, HoldsWholeBlocksAndTheirLayers) {
  const KvLayout layout = Layout();
  // The last block is not whole.
  std::vector<uint8_t> memory(3 * layout.block_bytes() - 1);
  const ArenaPages pages({absl::MakeSpan(memory), -1}, layout);
  EXPECT_EQ(pages.blocks(), 2);
  EXPECT_TRUE(pages.Holds(0, {0, 3}));
  EXPECT_TRUE(pages.Holds(1, {2, 3}));
  EXPECT_FALSE(pages.Holds(-1, {0, 3}));
  EXPECT_FALSE(pages.Holds(2, {0, 3}));
  EXPECT_FALSE(pages.Holds(0, {-1, 3}));
  EXPECT_FALSE(pages.Holds(0, {0, 4}));
  EXPECT_FALSE(pages.Holds(0, {1, 1}));
  EXPECT_FALSE(pages.Holds(0, {2, 1}));
  memory.push_back(0);
  EXPECT_EQ(ArenaPages({absl::MakeSpan(memory), -1}, layout).blocks(), 3);
  EXPECT_DEATH(pages.Page(2, {0, 1}), "block 2");
  EXPECT_DEATH(ArenaPages({absl::MakeSpan(memory), -1}, KvLayout()), "");
}

TEST(ArenaPagesTest, APageIsItsLayersBytes) {
  const KvLayout layout = Layout();
  // 16 tokens, keys and values of 2 heads of 4 halves.
  constexpr size_t kLayer = 16 * 2 * 2 * 4 * 2;
  ASSERT_EQ(layout.layer_bytes(), kLayer);
  std::vector<uint8_t> memory(2 * layout.block_bytes());
  const ArenaPages pages({absl::MakeSpan(memory), -1}, layout);
  for (absl::Span<uint8_t> part : pages.Page(1, {1, 3})) {
    for (uint8_t& byte : part) ++byte;
  }
  for (size_t i = 0; i < memory.size(); ++i) {
    ASSERT_EQ(memory[i], i >= 4 * kLayer ? 1 : 0) << i;
  }
  size_t bytes = 0;
  for (absl::Span<const uint8_t> part : ReadOnly(pages.Page(1, {0, 3}))) {
    bytes += part.size();
  }
  EXPECT_EQ(bytes, 3 * kLayer);
}

TEST(KvTransportTest, EachKindHasAName) {
  const std::pair<TransportKind, const char*> kKinds[] = {
      {TransportKind::kInproc, "inproc"},
      {TransportKind::kShm, "shm"},
      {TransportKind::kTcp, "tcp"}};
  for (const auto& [kind, name] : kKinds) {
    EXPECT_STREQ(TransportName(kind), name);
    auto parsed = ParseTransport(name);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, kind);
  }
  EXPECT_EQ(ParseTransport("TCP").status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
