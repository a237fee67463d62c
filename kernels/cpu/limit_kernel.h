#pragma once

#include "kernels/cpu/limit_loops.h"

namespace penstock {

template <class V>
float ReadAll(const uint8_t* data, size_t bytes) {
  constexpr int kStreams = 4;
  constexpr size_t kAhead = 1024;  // floats
  const size_t length = bytes / sizeof(float) / kStreams;
  const auto* floats = reinterpret_cast<const float*>(data);
  typename V::F32 sums[kStreams] = {V::Zero(), V::Zero(), V::Zero(), V::Zero()};
  for (size_t i = 0; i < length; i += 16) {
#pragma GCC unroll 4
    for (int stream = 0; stream < kStreams; ++stream) {
      const float* at = floats + stream * length + i;
      V::Prefetch(at + kAhead);
      sums[stream] = V::Add(sums[stream], V::Load(at));
    }
  }
  return V::Sum(V::Add(V::Add(sums[0], sums[1]), V::Add(sums[2], sums[3])));
}

// As many sums as registers hold beside what is added to them.
template <class V>
struct LimitTile {
  static constexpr int kRows = V::kTileRows;
  static constexpr int kPanels = V::kTileRows > 4 ? 2 : 1;
  static constexpr int kSteps = 16;  // of a round
  // Multiplications and additions of `width` elements a lane.
  static constexpr uint64_t Ops(int rounds, int width) {
    return uint64_t{2} * 16 * width * kRows * kPanels * kSteps * rounds;
  }
};

template <class V>
uint64_t DotBytesLoop(int rounds, uint8_t* scratch) {
  using Tile = LimitTile<V>;
  typename V::I32 dots[Tile::kRows][Tile::kPanels];
  typename V::Quad x[Tile::kRows];
#pragma GCC unroll 8
  for (int r = 0; r < Tile::kRows; ++r) {
    x[r] = V::LoadQuad(reinterpret_cast<const int8_t*>(scratch) + 4 * r);
#pragma GCC unroll 2
    for (int p = 0; p < Tile::kPanels; ++p) dots[r][p] = V::SetInt(0);
  }
  for (int step = 0; step < rounds * Tile::kSteps; ++step) {
    const uint8_t* at = scratch + step % Tile::kSteps * Tile::kPanels * 64;
#pragma GCC unroll 2
    for (int p = 0; p < Tile::kPanels; ++p) {
      const auto w = V::LoadBytes(at + p * 64);
#pragma GCC unroll 8
      for (int r = 0; r < Tile::kRows; ++r) {
        dots[r][p] = V::DotSmall(dots[r][p], w, x[r]);
      }
    }
  }
  for (int r = 0; r < Tile::kRows; ++r) {
    for (int p = 0; p < Tile::kPanels; ++p) {
      V::Store(reinterpret_cast<float*>(scratch) + (r * Tile::kPanels + p) * 16,
               V::ToFloat(dots[r][p]));
    }
  }
  return Tile::Ops(rounds, 4);
}

template <class V>
uint64_t MultiplyFloatsLoop(int rounds, uint8_t* scratch) {
  using Tile = LimitTile<V>;
  auto* floats = reinterpret_cast<float*>(scratch);
  typename V::F32 sums[Tile::kRows][Tile::kPanels], x[Tile::kRows];
#pragma GCC unroll 8
  for (int r = 0; r < Tile::kRows; ++r) {
    x[r] = V::Set(floats[r]);
#pragma GCC unroll 2
    for (int p = 0; p < Tile::kPanels; ++p) sums[r][p] = V::Zero();
  }
  for (int step = 0; step < rounds * Tile::kSteps; ++step) {
    const float* at = floats + step % Tile::kSteps * Tile::kPanels * 16;
#pragma GCC unroll 2
    for (int p = 0; p < Tile::kPanels; ++p) {
      const auto w = V::Load(at + p * 16);
#pragma GCC unroll 8
      for (int r = 0; r < Tile::kRows; ++r) {
        sums[r][p] = V::Fma(w, x[r], sums[r][p]);
      }
    }
  }
  for (int r = 0; r < Tile::kRows; ++r) {
    for (int p = 0; p < Tile::kPanels; ++p) {
      V::Store(floats + (r * Tile::kPanels + p) * 16, sums[r][p]);
    }
  }
  return Tile::Ops(rounds, 1);
}

}  // namespace penstock
