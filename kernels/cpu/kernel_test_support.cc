#include "kernels/cpu/kernel_test_support.h"

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

// One stored block of random bits with scales of the usual size.
void FillBlock(TensorType type, TestNumbers& numbers, uint8_t* block) {
  const int bytes = Traits(type).block_bytes;
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
    case TensorType::kQ4_0:
    case TensorType::kQ4_1:
    case TensorType::kQ8_0:
      for (int i = 2; i < bytes; ++i) {
        block[i] = static_cast<uint8_t>(numbers.Bits());
      }
      PutHalf(numbers.Between(0.01f, 0.1f), block);
      if (type == TensorType::kQ4_1) {
        PutHalf(numbers.Between(-0.5f, 0), block + 2);
      }
      return;
    default:
      CHECK(false) << "no test blocks of " << Traits(type).name;
  }
}

}  // namespace

uint32_t TestNumbers::Bits() {
  state_ = state_ * 6364136223846793005u + 1442695040888963407u;
  return static_cast<uint32_t>(state_ >> 32);
}

float TestNumbers::Between(float low, float high) {
  return low + (high - low) * static_cast<float>(Bits() >> 8) * 0x1p-24f;
}

std::vector<float> TestNumbers::Vector(size_t count, float low, float high) {
  std::vector<float> values(count);
  for (float& value : values) value = Between(low, high);
  return values;
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

TestActivations::TestActivations(int rows, int depth, int terms)
    : quants_(size_t(rows) * terms * depth),
      scales_(quants_.size() / kScaleDepth),
      scaled_sums_(scales_.size()),
      values_(size_t(rows) * depth),
      sums_(scales_.size()) {
  view.depth = depth;
  view.terms = terms;
  view.quants = quants_.data();
  view.scales = scales_.data();
  view.sums = sums_.data();
  view.scaled_sums = scaled_sums_.data();
  view.values = values_.data();
}

double TestActivations::At(int row, int k, int terms) const {
  double value = 0;
  for (int term = 0; term < terms; ++term) {
    const size_t at = (size_t(row) * view.terms + term) * view.depth + k;
    value += double{scales_[at / kScaleDepth]} * quants_[at];
  }
  return value;
}

std::vector<CpuPath> TestablePaths() {
  std::vector<CpuPath> paths = {CpuPath::kScalar};
  for (CpuPath path : {CpuPath::kAvx2, CpuPath::kAvx512}) {
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

}  // namespace penstock
