#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/fp8.h"
#include "kernels/cpu/half.h"

namespace penstock {

// Sixteen lanes in plain C++. This is the definition of the operations that
// every kernel is written in: SimdAvx2 and SimdAvx512 have the same members,
// and equal results bit for bit (NaN payloads aside).
struct SimdScalar {
  static constexpr const char* kName = "scalar";
  // Tile shapes: they change speed, never results.
  static constexpr int kTileRows = 2;
  static constexpr int kFloatTileRows = 2;  // of numbers, two panels wide
  static constexpr int kWideTileRows = 2;   // four panels wide
  // Whether DotBfloats is one instruction.
  static constexpr bool kDotsBfloats = false;
  static constexpr int kQueryTile = 2;

  struct F32 {
    float lane[16];
  };
  struct I32 {
    int32_t lane[16];
  };
  // Sixteen lanes of four bytes.
  struct Bytes {
    uint8_t byte[64];
  };
  // Four signed bytes, the same for all lanes.
  struct Quad {
    int8_t byte[4];
  };

  template <class Function>
  static F32 Map(Function function) {
    F32 out;
    for (int i = 0; i < 16; ++i) out.lane[i] = function(i);
    return out;
  }

  static F32 Zero() { return Set(0.0f); }
  static F32 Set(float x) {
    return Map([=](int) { return x; });
  }
  static F32 Load(const float* p) {
    F32 out;
    std::memcpy(&out, p, sizeof out);
    return out;
  }
  static void Store(float* p, const F32& a) { std::memcpy(p, &a, sizeof a); }
  static F32 Add(const F32& a, const F32& b) {
    return Map([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static F32 Sub(const F32& a, const F32& b) {
    return Map([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  static F32 Mul(const F32& a, const F32& b) {
    return Map([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  static F32 Div(const F32& a, const F32& b) {
    return Map([&](int i) { return a.lane[i] / b.lane[i]; });
  }
  // a * b + c, rounded once.
  static F32 Fma(const F32& a, const F32& b, const F32& c) {
    return Map(
        [&](int i) { return std::fma(a.lane[i], b.lane[i], c.lane[i]); });
  }
  // The second operand when they do not compare greater (NaN included).
  static F32 Max(const F32& a, const F32& b) {
    return Map(
        [&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static F32 Min(const F32& a, const F32& b) {
    return Map(
        [&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static F32 Abs(const F32& a) {
    return Map([&](int i) { return std::fabs(a.lane[i]); });
  }
  // The first `count` lanes of a, the others of b.
  static F32 KeepFirst(int count, const F32& a, const F32& b) {
    return Map([&](int i) { return i < count ? a.lane[i] : b.lane[i]; });
  }
  // Lanes are added as a tree: i + (i + 8), then + 4, + 2, + 1.
  static float Sum(F32 a) {
    for (int half = 8; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) a.lane[i] = a.lane[i] + a.lane[i + half];
    }
    return a.lane[0];
  }
  static float Largest(F32 a) {
    for (int half = 8; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) {
        if (a.lane[i + half] > a.lane[i]) a.lane[i] = a.lane[i + half];
      }
    }
    return a.lane[0];
  }
  // Whether no lane is NaN or infinite.
  static bool Finite(const F32& a) {
    for (int i = 0; i < 16; ++i) {
      if (!(std::fabs(a.lane[i]) < INFINITY)) return false;
    }
    return true;
  }

  static F32 LoadHalf(const uint16_t* p) {
    return Map([=](int i) { return HalfToFloat(p[i]); });
  }
  static void StoreHalf(uint16_t* p, const F32& a) {
    for (int i = 0; i < 16; ++i) p[i] = FloatToHalf(a.lane[i]);
  }
  static F32 LoadBfloat16(const uint16_t* p) {
    return Map([=](int i) { return Bfloat16ToFloat(p[i]); });
  }
  static void StoreBfloat16(uint16_t* p, const F32& a) {
    for (int i = 0; i < 16; ++i) p[i] = FloatToBfloat16(a.lane[i]);
  }
  // The same with zero for what is smaller than `least`.
  static void StoreBfloats(uint16_t* p, float least, const F32& a) {
    StoreBfloat16(p, Map([&](int i) {
                    return std::fabs(a.lane[i]) < least ? 0 : a.lane[i];
                  }));
  }
  static F32 LoadFp8(const uint8_t* p) {
    return Map([=](int i) { return Fp8ToFloat(p[i]); });
  }
  static void StoreFp8(uint8_t* p, const F32& a) {
    for (int i = 0; i < 16; ++i) p[i] = FloatToFp8(a.lane[i]);
  }
  static F32 LoadInt8(const uint8_t* p) {
    return Map([=](int i) { return static_cast<float>(int8_t(p[i])); });
  }
  // The low or the high nibble of each byte, less 8.
  static F32 LoadNibbles(const uint8_t* p, bool high) {
    return Map([=](int i) {
      return static_cast<float>((high ? p[i] >> 4 : p[i] & 15) - 8);
    });
  }

  static I32 SetInt(int32_t x) {
    I32 out;
    for (int i = 0; i < 16; ++i) out.lane[i] = x;
    return out;
  }
  static I32 AddInt(const I32& a, const I32& b) {
    I32 out;
    for (int i = 0; i < 16; ++i) out.lane[i] = a.lane[i] + b.lane[i];
    return out;
  }
  static int32_t SumInt(const I32& a) {
    int32_t sum = 0;
    for (int i = 0; i < 16; ++i) sum += a.lane[i];
    return sum;
  }
  static F32 ToFloat(const I32& a) {
    return Map([&](int i) { return static_cast<float>(a.lane[i]); });
  }
  // To nearest, ties to even; what does not fit (NaN included) becomes the
  // smallest integer.
  static I32 ToInt(const F32& a) {
    I32 out;
    for (int i = 0; i < 16; ++i) {
      const float x = std::nearbyint(a.lane[i]);
      out.lane[i] =
          std::fabs(x) < 0x1p31f ? static_cast<int32_t>(x) : INT32_MIN;
    }
    return out;
  }
  // Keeps the low byte of each lane.
  static void StoreInt8(int8_t* p, const I32& a) {
    for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(a.lane[i]);
  }
  // a * 2^n. Precondition: -126 <= n <= 127, or a is NaN.
  static F32 TimesPow2(const F32& a, const I32& n) {
    return Map([&](int i) {
      const uint32_t bits = static_cast<uint32_t>(n.lane[i] + 127) << 23;
      float power;
      std::memcpy(&power, &bits, sizeof power);
      return a.lane[i] * power;
    });
  }

  static Bytes LoadBytes(const uint8_t* p) {
    Bytes out;
    std::memcpy(&out, p, sizeof out);
    return out;
  }
  static Bytes LowNibbles(const Bytes& a) {
    Bytes out;
    for (int i = 0; i < 64; ++i) out.byte[i] = a.byte[i] & 15;
    return out;
  }
  static Bytes HighNibbles(const Bytes& a) {
    Bytes out;
    for (int i = 0; i < 64; ++i) out.byte[i] = a.byte[i] >> 4;
    return out;
  }
  static Quad LoadQuad(const int8_t* p) {
    Quad out;
    std::memcpy(&out, p, sizeof out);
    return out;
  }
  // acc + the dot product of each lane's four unsigned bytes with the quad.
  static I32 Dot(const I32& acc, const Bytes& w, const Quad& x) {
    I32 out;
    for (int i = 0; i < 16; ++i) {
      out.lane[i] = acc.lane[i];
      for (int e = 0; e < 4; ++e) {
        out.lane[i] += int32_t{w.byte[4 * i + e]} * int32_t{x.byte[e]};
      }
    }
    return out;
  }
  // The same where every byte of w is under 128.
  static I32 DotSmall(const I32& acc, const Bytes& w, const Quad& x) {
    return Dot(acc, w, x);
  }

  // acc + the products of each lane's two BF16 numbers with the quad's: the
  // second is added first, each sum is rounded. Precondition: no sum is
  // denormal.
  static F32 DotBfloats(const F32& acc, const Bytes& w, const Quad& x) {
    uint16_t pair[2], numbers[32];
    std::memcpy(pair, &x, sizeof pair);
    std::memcpy(numbers, &w, sizeof numbers);
    return Map([&](int i) {
      float sum = acc.lane[i];
      for (int e = 1; e >= 0; --e) {
        sum = std::fma(Bfloat16ToFloat(numbers[2 * i + e]),
                       Bfloat16ToFloat(pair[e]), sum);
      }
      return sum;
    });
  }

  static void Prefetch(const void*) {}
};

}  // namespace penstock
