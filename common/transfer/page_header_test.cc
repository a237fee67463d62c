#include "common/transfer/page_header.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/transfer/little_endian.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using Bytes = std::vector<uint8_t>;

// SmolLM2-135M's layout: 12288 bytes a layer.
KvLayout SmolLayout() {
  KvLayout layout;
  layout.layers = 30;
  layout.kv_heads = 3;
  layout.head_dim = 64;
  layout.value_dim = 64;
  layout.type = KvType::kF16;
  return layout;
}

BlockHasher TestHasher() {
  return BlockHasher(HashSecret("penstock test key"));
}

PageHeader Example() {
  PageHeader header;
  header.transfer = {RequestId(0x0102030405060708), AttemptId(9)};
  header.destination = Incarnation(0xA1B2C3D4E5F60718);
  header.block = {5, 3};
  header.layers = {4, 7};
  header.payload_bytes = 3 * 12288;
  header.payload_checksum = 0x1122334455667788;
  header.sequence = 42;
  header.layout = LayoutId(0x5da16a16bb7f7e43);
  return header;
}

// Made by an implementation of XXH3 in Python, from the specification.
constexpr char kExampleHex[] =
    "504b565001005000080706050403020109000000050000001807f6e5d4c3b2a1"
    "0300000004000700009000000000000088776655443322112a00000000000000"
    "437e7fbb166aa15d8080864200e4c680";
constexpr char kExtremeHex[] =
    "504b565001005000ffffffffffffffffffffffffffffff7f0100000000000000"
    "ffffffff00001e0000a005000000000000000000000000000100000000000000"
    "437e7fbb166aa15d53f05c46a8923cd6";

Bytes FromHex(const char* hex) {
  std::string raw = absl::HexStringToBytes(hex);
  return Bytes(raw.begin(), raw.end());
}

Bytes Encode(const PageHeader& header) {
  auto bytes = EncodePageHeader(header, TestHasher());
  return Bytes(bytes.begin(), bytes.end());
}

void ExpectEqual(const PageHeader& a, const PageHeader& b) {
  EXPECT_EQ(a.transfer, b.transfer);
  EXPECT_EQ(a.destination, b.destination);
  EXPECT_EQ(a.block, b.block);
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.payload_bytes, b.payload_bytes);
  EXPECT_EQ(a.payload_checksum, b.payload_checksum);
  EXPECT_EQ(a.sequence, b.sequence);
  EXPECT_EQ(a.layout, b.layout);
}

TEST(PageHeaderTest, FrozenVectors) {
  EXPECT_EQ(Encode(Example()), FromHex(kExampleHex));

  PageHeader extreme;
  extreme.transfer = {RequestId(UINT64_MAX), AttemptId(UINT32_MAX)};
  extreme.destination = Incarnation(1);
  extreme.block = {INT32_MAX, UINT32_MAX};
  extreme.layers = {0, 30};
  extreme.payload_bytes = 30 * 12288;
  extreme.sequence = 1;
  extreme.layout = SmolLayout().id();
  BlockHasher unkeyed{HashSecret("")};
  auto bytes = EncodePageHeader(extreme, unkeyed);
  EXPECT_EQ(Bytes(bytes.begin(), bytes.end()), FromHex(kExtremeHex));
  auto decoded = DecodePageHeader(bytes, SmolLayout(), unkeyed);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ExpectEqual(*decoded, extreme);
}

TEST(PageHeaderTest, DecodesTheFrozenVector) {
  auto decoded =
      DecodePageHeader(FromHex(kExampleHex), SmolLayout(), TestHasher());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ExpectEqual(*decoded, Example());
}

TEST(PageHeaderTest, PayloadChecksumVectors) {
  Bytes small(100), large(5000);
  for (int i = 0; i < 100; ++i) small[i] = i;
  for (int i = 0; i < 5000; ++i) large[i] = i % 251;
  EXPECT_EQ(TestHasher().Checksum(small), 0x5bf918fb85b08825u);
  EXPECT_EQ(TestHasher().Checksum(large), 0x56f36dfdaf96a2e7u);
  // Any cut gives the same.
  for (size_t cut : {size_t{0}, size_t{1}, size_t{240}, size_t{4999}}) {
    absl::Span<const uint8_t> all = large;
    absl::Span<const uint8_t> pieces[] = {all.first(cut), all.subspan(cut)};
    EXPECT_EQ(TestHasher().ChecksumPieces(pieces), 0x56f36dfdaf96a2e7u);
  }
}

// What Decode says of a header changed in some way.
std::optional<PageRefusal> RefusalFor(
    const std::function<void(PageHeader&)>& change) {
  PageHeader header = Example();
  change(header);
  auto decoded = DecodePageHeader(Encode(header), SmolLayout(), TestHasher());
  return RefusalOf(decoded.status());
}

std::optional<PageRefusal> RefusalForBytes(const Bytes& bytes) {
  return RefusalOf(
      DecodePageHeader(bytes, SmolLayout(), TestHasher()).status());
}

TEST(PageHeaderTest, RefusesEveryTruncation) {
  Bytes bytes = Encode(Example());
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_EQ(RefusalForBytes(Bytes(bytes.begin(), bytes.begin() + n)),
              PageRefusal::kTruncated);
  }
}

TEST(PageHeaderTest, RefusesWhatIsNoHeader) {
  Bytes bytes = Encode(Example());
  bytes[0] ^= 1;
  EXPECT_EQ(RefusalForBytes(bytes), PageRefusal::kBadMagic);
  bytes = Encode(Example());
  StoreLittleEndian<uint16_t>(2, &bytes[4]);
  EXPECT_EQ(RefusalForBytes(bytes), PageRefusal::kBadVersion);
  bytes = Encode(Example());
  StoreLittleEndian<uint16_t>(88, &bytes[6]);
  EXPECT_EQ(RefusalForBytes(bytes), PageRefusal::kBadHeaderLength);
}

TEST(PageHeaderTest, RefusesEveryFlippedBit) {
  for (size_t bit = 8 * 8; bit < 8 * kPageHeaderBytes; ++bit) {
    Bytes bytes = Encode(Example());
    bytes[bit / 8] ^= 1 << (bit % 8);
    EXPECT_EQ(RefusalForBytes(bytes), PageRefusal::kBadHeaderChecksum) << bit;
  }
}

TEST(PageHeaderTest, RefusesAnotherClusterKey) {
  BlockHasher other{HashSecret("another key")};
  auto decoded = DecodePageHeader(Encode(Example()), SmolLayout(), other);
  EXPECT_EQ(RefusalOf(decoded.status()), PageRefusal::kBadHeaderChecksum);
}

TEST(PageHeaderTest, RefusesWhatDoesNotFitTheLayout) {
  EXPECT_EQ(RefusalFor([](PageHeader& h) { h.layout = LayoutId(7); }),
            PageRefusal::kWrongLayout);
  EXPECT_EQ(RefusalFor([](PageHeader& h) {
              h.layers = {4, 4};
            }),
            PageRefusal::kBadLayerRange);
  EXPECT_EQ(RefusalFor([](PageHeader& h) {
              h.layers = {28, 31};
            }),
            PageRefusal::kBadLayerRange);
  EXPECT_EQ(RefusalFor([](PageHeader& h) { ++h.payload_bytes; }),
            PageRefusal::kBadLength);
  EXPECT_EQ(RefusalFor([](PageHeader& h) { h.payload_bytes = UINT64_MAX; }),
            PageRefusal::kBadLength);
}

TEST(PageHeaderTest, ReversedLayersAreRefused) {
  Bytes bytes = Encode(Example());
  std::swap(bytes[36], bytes[38]);
  StoreLittleEndian<uint64_t>(
      TestHasher().Checksum(absl::MakeConstSpan(bytes).first(72)), &bytes[72]);
  EXPECT_EQ(RefusalForBytes(bytes), PageRefusal::kBadLayerRange);
}

TEST(PageRefusalTest, TravelsInAStatus) {
  for (int i = 0; i < kPageRefusals; ++i) {
    PageRefusal refusal = static_cast<PageRefusal>(i);
    absl::Status status = RefusalStatus(refusal, "why");
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(RefusalOf(status), refusal);
  }
  EXPECT_EQ(RefusalOf(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(RefusalOf(absl::DataLossError("other")), std::nullopt);
}

}  // namespace
}  // namespace penstock
