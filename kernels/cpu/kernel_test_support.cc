#include "kernels/cpu/kernel_test_support.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "common/base/check.h"
#include "kernels/cpu/half.h"

namespace penstock {
namespace {

void PutHalf(float value, uint8_t* to) {
  const uint16_t half = FloatToHalf(value);
  std::memcpy(to, &half, sizeof half);
}

// Where the F16 numbers of a stored block lie, and their usual sizes.
struct BlockScales {
  int scale_at = 0;
  float scale = 0;  // about the largest
  int second_at = -1;
  float second = 0;  // of a minimum; negative where it is stored added
};

BlockScales ScalesOf(TensorType type) {
  switch (type) {
    case TensorType::kQ4_0:
    case TensorType::kQ5_0:
    case TensorType::kQ8_0:
    case TensorType::kIQ4_NL:
      return {0, 0.1f};
    case TensorType::kQ4_1:
    case TensorType::kQ5_1:
      return {0, 0.1f, 2, -0.5f};
    // Times small integers.
    case TensorType::kQ2_K:
      return {80, 0.02f, 82, 0.03f};
    case TensorType::kQ3_K:
      return {108, 0.01f};
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
      return {0, 0.002f, 2, 0.01f};
    case TensorType::kQ6_K:
      return {208, 0.0005f};
    case TensorType::kIQ4_XS:
      return {0, 0.0005f};
    default:
      CHECK(false) << "no scales in " << Traits(type).name;
      return {};
  }
}

// One stored block of random bits with scales of the usual size.
void FillBlock(TensorType type, TestNumbers& numbers, uint8_t* block) {
  const float value = numbers.Between(-1, 1);
  switch (type) {
    case TensorType::kF32:
      std::memcpy(block, &value, sizeof value);
      return;
    case TensorType::kF16:
      PutHalf(value, block);
      return;
    case TensorType::kBF16:
      std::memcpy(block, reinterpret_cast<const uint8_t*>(&value) + 2, 2);
      return;
    default:
      break;
  }
  for (int i = 0; i < Traits(type).block_bytes; ++i) {
    block[i] = static_cast<uint8_t>(numbers.Bits());
  }
  const BlockScales scales = ScalesOf(type);
  PutHalf(numbers.Between(scales.scale / 10, scales.scale),
          block + scales.scale_at);
  if (scales.second_at >= 0) {
    PutHalf(numbers.Between(scales.second / 10, scales.second),
            block + scales.second_at);
  }
}

}  // namespace

uint32_t TestNumbers::Bits() {
  state_ = state_ * 6364136223846793005u + 1442695040888963407u;
  return static_cast<uint32_t>(state_ >> 32);
}

int TestNumbers::Integer(int least, int most) {
  return least + static_cast<int>(Bits() % uint32_t(most - least + 1));
}

float TestNumbers::Between(float low, float high) {
  return low + (high - low) * static_cast<float>(Bits() >> 8) * 0x1p-24f;
}

std::vector<float> TestNumbers::Vector(size_t count, float low, float high) {
  std::vector<float> values(count);
  for (float& value : values) value = Between(low, high);
  return values;
}

std::vector<float> AwkwardNumbers() {
  return {0,     -0.0f,    1e-45f,    1e-39f, -1e-31f,
          1e30f, INFINITY, -INFINITY, NAN,    3.4e38f};
}

std::vector<float> AwkwardRows(int rows, int depth, TestNumbers& numbers) {
  const std::vector<float> awkward = AwkwardNumbers();
  const auto any = [&] { return awkward[numbers.Bits() % awkward.size()]; };
  std::vector<float> x;
  for (int row = 0; row < rows; ++row) {
    std::vector<float> usual = numbers.Vector(depth, -3, 5);
    switch (numbers.Integer(0, 3)) {
      case 0:
        break;
      case 1:
        usual[numbers.Integer(0, depth - 1)] = any();
        break;
      case 2:
        for (int k = 0; k < depth; k += numbers.Integer(1, 9)) usual[k] = any();
        break;
      case 3:
        std::fill(usual.begin(), usual.end(), any());
        break;
    }
    x.insert(x.end(), usual.begin(), usual.end());
  }
  return x;
}

bool FiniteRow(const std::vector<float>& x, int row, int depth) {
  const auto first = x.begin() + row * depth;
  return std::all_of(first, first + depth,
                     [](float value) { return std::isfinite(value); });
}

TestTensor::TestTensor(TensorType type, int64_t rows, int64_t cols,
                       uint64_t seed) {
  const TensorTypeTraits& traits = Traits(type);
  TestNumbers numbers(seed);
  bytes.resize(rows * cols / traits.block_elements * traits.block_bytes);
  for (size_t at = 0; at < bytes.size(); at += traits.block_bytes) {
    FillBlock(type, numbers, bytes.data() + at);
  }
  view.type = type;
  view.shape = {rows, cols};
  view.data = bytes;
}

TestActivations::TestActivations(int rows, int depth, int refined)
    : quants_(size_t(rows) * (refined > 0 ? 2 : 1) * depth),
      scales_(quants_.size() / kScaleDepth),
      scaled_sums_(scales_.size()),
      values_(size_t(rows) * depth),
      sums_(scales_.size()),
      half_sums_(2 * scales_.size()),
      bfloats_(values_.size()),
      chosen_(size_t(rows) * refined) {
  view.depth = depth;
  view.terms = refined > 0 ? 2 : 1;
  view.refined = refined;
  view.chosen = chosen_.data();
  view.quants = quants_.data();
  view.scales = scales_.data();
  view.sums = sums_.data();
  view.scaled_sums = scaled_sums_.data();
  view.half_sums = half_sums_.data();
  view.values = values_.data();
  view.bfloats = bfloats_.data();
}

double TestActivations::Term(int row, int k, int term) const {
  const size_t at = (size_t(row) * view.terms + term) * view.depth + k;
  return double{scales_[at / kScaleDepth]} * quants_[at];
}

double TestActivations::At(int row, int k) const {
  const auto chosen = chosen_.begin() + row * view.refined;
  const bool refined =
      std::count(chosen, chosen + view.refined, k / kScaleDepth) > 0;
  return Term(row, k, 0) + (refined ? Term(row, k, 1) : 0);
}

std::vector<CpuPath> TestablePaths() {
  std::vector<CpuPath> paths = {CpuPath::kScalar};
  for (CpuPath path :
       {CpuPath::kAvx2, CpuPath::kAvx512, CpuPath::kAvx512Bf16}) {
    if (FindKernels(path) != nullptr) {
      paths.push_back(path);
    } else {
      std::printf("not tested on this machine: %s\n",
                  std::string(CpuPathName(path)).c_str());
    }
  }
  return paths;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

bool SameNumbers(const std::vector<float>& a, const std::vector<float>& b) {
  const auto unify = [](std::vector<float> x) {
    std::replace_if(
        x.begin(), x.end(), [](float value) { return std::isnan(value); }, NAN);
    return x;
  };
  return SameBits(unify(a), unify(b));
}

}  // namespace penstock
