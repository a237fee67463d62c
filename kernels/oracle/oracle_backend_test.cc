#include "kernels/oracle/oracle_backend.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/model/files/testing/tiny_llama.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/oracle/oracle_attention.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

// Room for two blocks, and for an arena that starts one byte late.
class OracleBackendTest : public ::testing::Test {
 protected:
  OracleBackendTest()
      : model_(OpenTinyLlama()),
        block_bytes_(KvLayout::For(model_->spec(), KvType::kF32).block_bytes()),
        floats_(block_bytes_ / 2) {}

  OracleBackend::Options Options(size_t first, size_t bytes) {
    OracleBackend::Options options;
    options.model = model_.get();
    options.arena.bytes = absl::MakeSpan(
        reinterpret_cast<uint8_t*>(floats_.data()) + first, bytes);
    return options;
  }

  void ExpectRefused(OracleBackend::Options options, const char* what) {
    const absl::Status status =
        OracleBackend::Create(std::move(options)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }

  std::unique_ptr<ModelFile> model_;
  size_t block_bytes_;
  std::vector<float> floats_;
};

TEST_F(OracleBackendTest, RefusesAnArenaWithoutABlock) {
  ExpectRefused(Options(0, block_bytes_ - 1), "hold no KV block");
  ExpectRefused(Options(0, 0), "hold no KV block");
  EXPECT_TRUE(OracleBackend::Create(Options(0, block_bytes_)).ok());
}

TEST_F(OracleBackendTest, RefusesAnArenaThatIsNotAligned) {
  ExpectRefused(Options(1, block_bytes_), "not aligned");
}

TEST_F(OracleBackendTest, RefusesBoundsThatAreNotPositive) {
  OracleBackend::Options options = Options(0, block_bytes_);
  options.max_rows = 0;
  ExpectRefused(options, "max_rows");
  options = Options(0, block_bytes_);
  options.max_sequences = -1;
  ExpectRefused(options, "max_sequences");
  options = Options(0, block_bytes_);
  options.compute_threads.threads = 0;
  ExpectRefused(options, "threads");
}

// Rotation by the closed form: pair i turns by position * base^(-2i / dims).
TEST(RopeTest, TurnsPairsByTheirAngle) {
  constexpr int kDim = 6, kTurning = 4, kPosition = 3;
  const std::vector<float> before = {1, 2, 3, 4, 5, 6};
  for (RopePairing pairing :
       {RopePairing::kInterleaved, RopePairing::kHalves}) {
    const Rope rope({.base = 100, .dimensions = kTurning, .pairing = pairing},
                    kDim, 64);
    std::vector<float> after = before;
    rope.Rotate(kPosition, 1, after.data());
    const bool interleaved = pairing == RopePairing::kInterleaved;
    for (int i = 0; i < kTurning / 2; ++i) {
      const int first = interleaved ? 2 * i : i;
      const int second = interleaved ? 2 * i + 1 : i + kTurning / 2;
      const double angle = i == 0 ? kPosition : kPosition * 0.1;
      EXPECT_NEAR(
          after[first],
          before[first] * std::cos(angle) - before[second] * std::sin(angle),
          1e-6);
      EXPECT_NEAR(
          after[second],
          before[first] * std::sin(angle) + before[second] * std::cos(angle),
          1e-6);
    }
    EXPECT_EQ(after[4], 5);  // beyond the dimensions that turn
    EXPECT_EQ(after[5], 6);
  }
}

}  // namespace
}  // namespace penstock
