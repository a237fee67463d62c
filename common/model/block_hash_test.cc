// The vectors freeze a wire contract: workers and routers of different builds
// compare these hashes. They were made without this code and without the C
// library: by a Python rendering of the XXH3-64 specification that takes a
// secret, which was checked against the PyPI package xxhash 4.1.0 (XXH 0.8.4,
// seeds only) on every length from 0 to 299 and around the stripe and block
// borders. The 192 secret bytes are that package's xxh3_64 of the cluster key
// with seeds 1 to 24, each eight bytes little-endian.

#include "common/model/block_hash.h"

#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/env/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr ContentId kModel{0x0123456789abcdef};

std::string Hex(absl::Span<const uint8_t> bytes) {
  return absl::BytesToHexString(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::vector<uint8_t> Bytes(size_t size) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  return bytes;
}

std::vector<TokenId> Tokens(size_t size) {
  std::vector<TokenId> tokens(size);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

struct Vectors {
  std::string cluster_key;
  std::string secret_head, secret_tail;  // its first and last 16 bytes
  uint64_t root, scoped_root, long_root;
  uint64_t chain[2];
  uint64_t largest_ids;
  std::array<uint64_t, 7> checksums;  // of kSizes bytes
};
constexpr size_t kSizes[] = {0, 1, 16, 100, 240, 1000, 100000};

const Vectors kVectors[] = {
    {"",
     "03676f82ccb0c54da0fdfcd1ecf76cf3",
     "afb8a4a00c85bda2d377b4294676a0f4",
     0x79dd8cb33a123c4d,
     0x9cfb1e21812f2e35,
     0xa460e5e294671618,
     {0xe15eaf0ee721f4df, 0xf8b9eaf6522e2601},
     0xc0eb3c682e090106,
     {0x5be7eefac61cce19, 0x3025f5729ba67bf9, 0xba95e668a14874c3,
      0xbcbcf43d8d381da4, 0x35843a9159f6786a, 0xc8b92a223a1e22c6,
      0xdb870377c1b38b23}},
    {"penstock test key",
     "7c89235cb0e12e05e10ad87974e9fcd6",
     "2f2b11e63dfb2a224ad29e82aa4e1e05",
     0xb9b9975cc996f529,
     0xe13e7dbac60d782d,
     0x0e69f230c98e7c2b,
     {0x4911656ed1e320da, 0x1f570e75b8a65251},
     0x675d961b6dcbd354,
     {0x6f0e344ce4e2d26f, 0x47049876735a2ec9, 0xe5e993bc97cb659c,
      0x6b32b539fc5ad4f5, 0x49951ff366c4b434, 0x34f940bd160ad02e,
      0x67688b944f5a6fd3}},
};

class BlockHashTest : public testing::TestWithParam<Vectors> {
 protected:
  HashSecret secret_{GetParam().cluster_key};
  BlockHasher hasher_{secret_};
};

TEST_P(BlockHashTest, Secret) {
  ASSERT_EQ(secret_.bytes().size(), 192u);
  EXPECT_EQ(Hex(secret_.bytes().first(16)), GetParam().secret_head);
  EXPECT_EQ(Hex(secret_.bytes().last(16)), GetParam().secret_tail);
}

TEST_P(BlockHashTest, Root) {
  EXPECT_EQ(
      hasher_
          .Root(
              {.model = kModel, .adapter = "", .tenant = "", .cache_salt = ""})
          .value(),
      GetParam().root);
  EXPECT_EQ(hasher_
                .Root({.model = kModel,
                       .adapter = "adapter",
                       .tenant = "tenant",
                       .cache_salt = "salt"})
                .value(),
            GetParam().scoped_root);
  EXPECT_EQ(hasher_
                .Root({.model = ContentId(1),
                       .adapter = "",
                       .tenant = std::string(300, 't'),
                       .cache_salt = ""})
                .value(),
            GetParam().long_root);
}

// The chain over tokens 0, 1, 2, ... under the scoped root.
TEST_P(BlockHashTest, Chain) {
  BlockHash root(GetParam().scoped_root);
  EXPECT_THAT(hasher_.Chain(root, Tokens(39)),
              testing::ElementsAre(BlockHash(GetParam().chain[0]),
                                   BlockHash(GetParam().chain[1])));
  EXPECT_EQ(hasher_.Next(root, Tokens(kBlockTokens)),
            BlockHash(GetParam().chain[0]));
  EXPECT_THAT(hasher_.Chain(root, Tokens(15)), testing::IsEmpty());
}

// A chain is computed in another way than one block.
TEST_P(BlockHashTest, AChainIsItsBlocks) {
  SeededRandom random(5);
  for (int blocks = 1; blocks < 60; ++blocks) {
    std::vector<TokenId> tokens(blocks * kBlockTokens + blocks % kBlockTokens);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random.Next());
    BlockHash parent(random.Next());
    const std::vector<BlockHash> chain = hasher_.Chain(parent, tokens);
    ASSERT_EQ(chain.size(), static_cast<size_t>(blocks));
    for (int i = 0; i < blocks; ++i) {
      parent = hasher_.Next(parent, absl::MakeConstSpan(tokens).subspan(
                                        i * kBlockTokens, kBlockTokens));
      ASSERT_EQ(chain[i], parent) << i << " of " << blocks;
    }
  }
}

TEST_P(BlockHashTest, LargestIds) {
  std::vector<TokenId> tokens(kBlockTokens, 0x7fffffff);
  EXPECT_EQ(hasher_.Next(BlockHash(1), tokens),
            BlockHash(GetParam().largest_ids));
}

TEST_P(BlockHashTest, Checksum) {
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    std::vector<uint8_t> bytes = Bytes(kSizes[i]);
    EXPECT_EQ(hasher_.Checksum(bytes), GetParam().checksums[i]) << kSizes[i];
    // However they are cut, an empty piece included.
    absl::Span<const uint8_t> all = bytes;
    size_t third = all.size() / 3;
    EXPECT_EQ(hasher_.ChecksumPieces(
                  {all.first(third), all.first(0), all.subspan(third)}),
              GetParam().checksums[i])
        << kSizes[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Keys, BlockHashTest, testing::ValuesIn(kVectors));

TEST(BlockHasherTest, EveryPartOfTheScopeCounts) {
  BlockHasher hasher{HashSecret("key")};
  using Scope = BlockHasher::Scope;
  std::vector<Scope> scopes = {
      {kModel, "", "", ""},   {ContentId(2), "", "", ""},
      {kModel, "a", "", ""},  {kModel, "", "a", ""},
      {kModel, "", "", "a"},  {kModel, "a", "b", ""},
      {kModel, "ab", "", ""}, {kModel, "", "ab", ""},
  };
  for (size_t i = 0; i < scopes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NE(hasher.Root(scopes[i]), hasher.Root(scopes[j])) << i << j;
    }
  }
}

TEST(BlockHasherDeathTest, ABlockIsFull) {
  BlockHasher hasher{HashSecret("key")};
  EXPECT_DEATH(hasher.Next(BlockHash(1), Tokens(15)), "CHECK failed");
}

}  // namespace
}  // namespace penstock
