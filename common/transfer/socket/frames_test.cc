#include "common/transfer/socket/frames.h"

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using absl::StatusCode;
using Bytes = std::vector<uint8_t>;

constexpr uint64_t kAccessKey = 0x0102030405060708;

// Made with xxhash from Python, by the documented layout.
constexpr char kChallengeHex[] =
    "504b564301002000000102030405060708090a0b0c0d0e0f0000000000000000";
constexpr char kHelloHex[] =
    "504b56480100c800020000000900000011110000000000002222000000000000"
    "3333000000000000101112131415161718191a1b1c1d1e1f70726566696c6c2d"
    "3000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000001b450dac72a6e41e"
    "e650bf87b4a00a1f";
constexpr char kVerdictHex[] =
    "504b56560100200003000000000000000000000000000000ae65761a750a82b3";
constexpr char kAckHex[] =
    "504b5641010020002a0000000000000000000000000000006a53f9dd429b1210";
constexpr char kNackHex[] =
    "504b5641010020002b000000000000000b0000000000000043b92634f31fcd98";

template <typename Frame>
std::string Hex(const Frame& frame) {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(frame.data()), frame.size()));
}

Bytes FromHex(const char* hex) {
  std::string raw = absl::HexStringToBytes(hex);
  return Bytes(raw.begin(), raw.end());
}

Nonce Counting(uint8_t from) {
  Nonce nonce;
  for (uint8_t& byte : nonce) byte = from++;
  return nonce;
}

BlockHasher TestHasher() {
  return BlockHasher(HashSecret("penstock test key"));
}

Hello ExampleHello() {
  return {TransportKind::kTcp,
          {"prefill-0", Incarnation(0x1111)},
          Incarnation(0x2222),
          LayoutId(0x3333),
          Counting(16)};
}

const HelloExpectation kExpected{TransportKind::kTcp, Incarnation(0x2222),
                                 LayoutId(0x3333)};

Proof TestProof() { return {Counting(0), kAccessKey}; }

TEST(FramesTest, FrozenVectors) {
  BlockHasher hasher = TestHasher();
  EXPECT_EQ(Hex(EncodeChallenge({Counting(0)})), kChallengeHex);
  EXPECT_EQ(Hex(EncodeHello(ExampleHello(), TestProof(), hasher)), kHelloHex);
  EXPECT_EQ(Hex(EncodeVerdict(Verdict::kWrongIncarnation, Counting(0),
                              Counting(16), hasher)),
            kVerdictHex);
  EXPECT_EQ(Hex(EncodeAck({42, std::nullopt}, hasher)), kAckHex);
  EXPECT_EQ(Hex(EncodeAck({43, PageRefusal::kStaleGeneration}, hasher)),
            kNackHex);
}

TEST(FramesTest, DecodesTheFrozenVectors) {
  BlockHasher hasher = TestHasher();
  auto challenge = DecodeChallenge(FromHex(kChallengeHex));
  ASSERT_TRUE(challenge.ok());
  EXPECT_EQ(challenge->nonce, Counting(0));

  auto read = DecodeHello(FromHex(kHelloHex), kExpected, TestProof(), hasher);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->verdict, Verdict::kWelcome);
  EXPECT_EQ(read->hello.source, (WorkerKey{"prefill-0", Incarnation(0x1111)}));
  EXPECT_EQ(read->hello.nonce, Counting(16));

  EXPECT_EQ(RefusalOf(DecodeVerdict(FromHex(kVerdictHex), Counting(0),
                                    Counting(16), hasher)),
            PageRefusal::kWrongIncarnation);

  auto ack = DecodeAck(FromHex(kAckHex), hasher);
  ASSERT_TRUE(ack.ok());
  EXPECT_EQ(ack->sequence, 42u);
  EXPECT_EQ(ack->refusal, std::nullopt);
  auto nack = DecodeAck(FromHex(kNackHex), hasher);
  ASSERT_TRUE(nack.ok());
  EXPECT_EQ(nack->refusal, PageRefusal::kStaleGeneration);
}

Verdict VerdictOn(const Hello& hello, const Proof& proof,
                  const BlockHasher& hasher) {
  auto read = DecodeHello(EncodeHello(hello, proof, hasher), kExpected,
                          TestProof(), TestHasher());
  EXPECT_TRUE(read.ok()) << read.status();
  return read->verdict;
}

TEST(FramesTest, EachMistakeInAHelloHasItsVerdict) {
  Hello hello = ExampleHello();
  BlockHasher other{HashSecret("another key")};
  EXPECT_EQ(VerdictOn(hello, TestProof(), TestHasher()), Verdict::kWelcome);
  EXPECT_EQ(VerdictOn(hello, TestProof(), other), Verdict::kNotAuthorised);
  EXPECT_EQ(VerdictOn(hello, {Counting(0), kAccessKey + 1}, TestHasher()),
            Verdict::kNotAuthorised);
  // An answer to another challenge: a replay.
  EXPECT_EQ(VerdictOn(hello, {Counting(1), kAccessKey}, TestHasher()),
            Verdict::kNotAuthorised);
  hello.kind = TransportKind::kShm;
  EXPECT_EQ(VerdictOn(hello, TestProof(), TestHasher()), Verdict::kWrongKind);
  hello = ExampleHello();
  hello.destination = Incarnation(0x2223);
  EXPECT_EQ(VerdictOn(hello, {Counting(0), 0}, TestHasher()),
            Verdict::kWrongIncarnation);
  hello = ExampleHello();
  hello.layout = LayoutId(0x3334);
  EXPECT_EQ(VerdictOn(hello, TestProof(), TestHasher()), Verdict::kWrongLayout);
}

TEST(FramesTest, EveryFlippedBitOfAHelloIsNoticed) {
  BlockHasher hasher = TestHasher();
  for (size_t bit = 0; bit < 8 * kHelloBytes; ++bit) {
    Bytes frame = FromHex(kHelloHex);
    frame[bit / 8] ^= 1 << (bit % 8);
    auto read = DecodeHello(frame, kExpected, TestProof(), hasher);
    EXPECT_TRUE(!read.ok() || read->verdict == Verdict::kNotAuthorised) << bit;
  }
}

TEST(FramesTest, VerdictsAreProvedAndMapped) {
  BlockHasher hasher = TestHasher(), other{HashSecret("another key")};
  const StatusCode expected[kVerdicts] = {StatusCode::kOk,
                                          StatusCode::kPermissionDenied,
                                          StatusCode::kFailedPrecondition,
                                          StatusCode::kDataLoss,
                                          StatusCode::kDataLoss,
                                          StatusCode::kUnavailable,
                                          StatusCode::kFailedPrecondition};
  for (int i = 0; i < kVerdicts; ++i) {
    ShortFrame frame = EncodeVerdict(static_cast<Verdict>(i), Counting(0),
                                     Counting(16), hasher);
    EXPECT_EQ(DecodeVerdict(frame, Counting(0), Counting(16), hasher).code(),
              expected[i]);
    EXPECT_EQ(DecodeVerdict(frame, Counting(0), Counting(16), other).code(),
              StatusCode::kPermissionDenied);
    EXPECT_EQ(DecodeVerdict(frame, Counting(0), Counting(17), hasher).code(),
              StatusCode::kPermissionDenied);
  }
  ShortFrame unknown = EncodeVerdict(static_cast<Verdict>(kVerdicts),
                                     Counting(0), Counting(16), hasher);
  EXPECT_EQ(DecodeVerdict(unknown, Counting(0), Counting(16), hasher).code(),
            StatusCode::kInvalidArgument);
}

TEST(FramesTest, RefusesDamagedAcksAndOtherFrames) {
  BlockHasher hasher = TestHasher();
  for (size_t bit = 0; bit < 8 * kShortFrameBytes; ++bit) {
    Bytes frame = FromHex(kAckHex);
    frame[bit / 8] ^= 1 << (bit % 8);
    EXPECT_FALSE(DecodeAck(frame, hasher).ok()) << bit;
  }
  EXPECT_FALSE(DecodeAck(FromHex(kChallengeHex), hasher).ok());
  EXPECT_FALSE(DecodeChallenge(FromHex(kAckHex)).ok());
  EXPECT_FALSE(DecodeChallenge({}).ok());
}

}  // namespace
}  // namespace penstock
