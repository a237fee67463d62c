#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace penstock {

// The operations of SimdScalar in AVX2, FMA and F16C, as two halves of eight
// lanes. For sources that are compiled for it only.
struct SimdAvx2 {
  static constexpr const char* kName = "avx2";
  static constexpr int kTileRows = 4;
  static constexpr int kFloatTileRows = 4;
  static constexpr int kWideTileRows = 2;
  static constexpr bool kDotsBfloats = false;
  static constexpr int kQueryTile = 2;

  struct F32 {
    __m256 low, high;
  };
  struct I32 {
    __m256i low, high;
  };
  struct Bytes {
    __m256i low, high;
  };
  using Quad = __m256i;

  static F32 Zero() { return Set(0.0f); }
  static F32 Set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static F32 Load(const float* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
  }
  static void Store(float* p, F32 a) {
    _mm256_storeu_ps(p, a.low);
    _mm256_storeu_ps(p + 8, a.high);
  }
  static F32 Add(F32 a, F32 b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  static F32 Sub(F32 a, F32 b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  static F32 Mul(F32 a, F32 b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  static F32 Div(F32 a, F32 b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  static F32 Fma(F32 a, F32 b, F32 c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low),
            _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static F32 Max(F32 a, F32 b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  static F32 Min(F32 a, F32 b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  static F32 Abs(F32 a) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
  }
  static F32 KeepFirst(int count, F32 a, F32 b) {
    const __m256i limit = _mm256_set1_epi32(count);
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i low = _mm256_cmpgt_epi32(limit, index);
    const __m256i high = _mm256_cmpgt_epi32(
        limit, _mm256_add_epi32(index, _mm256_set1_epi32(8)));
    return {_mm256_blendv_ps(b.low, a.low, _mm256_castsi256_ps(low)),
            _mm256_blendv_ps(b.high, a.high, _mm256_castsi256_ps(high))};
  }
  static float Sum(F32 a) {
    const __m256 eight = _mm256_add_ps(a.low, a.high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                             _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
  }
  static float Largest(F32 a) {
    const __m256 eight = _mm256_max_ps(a.high, a.low);
    __m128 four = _mm_max_ps(_mm256_extractf128_ps(eight, 1),
                             _mm256_castps256_ps128(eight));
    four = _mm_max_ps(_mm_movehl_ps(four, four), four);
    return _mm_cvtss_f32(_mm_max_ss(_mm_movehdup_ps(four), four));
  }
  static bool Finite(F32 a) {
    const F32 b = Abs(a);
    const __m256 infinity = _mm256_set1_ps(__builtin_inff());
    return _mm256_movemask_ps(_mm256_and_ps(
               _mm256_cmp_ps(b.low, infinity, _CMP_LT_OQ),
               _mm256_cmp_ps(b.high, infinity, _CMP_LT_OQ))) == 0xff;
  }

  static F32 LoadHalf(const uint16_t* p) {
    return {_mm256_cvtph_ps(Load128(p)), _mm256_cvtph_ps(Load128(p + 8))};
  }
  static void StoreHalf(uint16_t* p, F32 a) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_cvtps_ph(a.low, kNearest));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8),
                     _mm256_cvtps_ph(a.high, kNearest));
  }
  static F32 LoadBfloat16(const uint16_t* p) {
    return {WidenBfloat16(Load128(p)), WidenBfloat16(Load128(p + 8))};
  }
  static void StoreBfloat16(uint16_t* p, F32 a) {
    const __m256i both =
        _mm256_packus_epi32(RoundBfloat16(a.low), RoundBfloat16(a.high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm256_permute4x64_epi64(both, 0xd8));
  }
  static void StoreBfloats(uint16_t* p, float least, F32 a) {
    const F32 size = Abs(a);
    const __m256 limit = _mm256_set1_ps(least);
    const __m256 low = _mm256_cmp_ps(size.low, limit, _CMP_NLT_UQ);
    const __m256 high = _mm256_cmp_ps(size.high, limit, _CMP_NLT_UQ);
    StoreBfloat16(p, {_mm256_and_ps(a.low, low), _mm256_and_ps(a.high, high)});
  }
  static F32 LoadFp8(const uint8_t* p) {
    return {WidenFp8(Load64(p)), WidenFp8(Load64(p + 8))};
  }
  static void StoreFp8(uint8_t* p, F32 a) {
    StoreInt8(reinterpret_cast<int8_t*>(p),
              {RoundFp8(a.low), RoundFp8(a.high)});
  }
  static F32 LoadInt8(const uint8_t* p) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(Load64(p))),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(Load64(p + 8)))};
  }
  static F32 LoadNibbles(const uint8_t* p, bool high) {
    return {WidenNibbles(Load64(p), high), WidenNibbles(Load64(p + 8), high)};
  }

  static I32 SetInt(int32_t x) {
    return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
  }
  static I32 AddInt(I32 a, I32 b) {
    return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
  }
  static int32_t SumInt(I32 a) {
    const __m256i eight = _mm256_add_epi32(a.low, a.high);
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight),
                                 _mm256_extracti128_si256(eight, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
    return _mm_cvtsi128_si32(four);
  }
  static F32 ToFloat(I32 a) {
    return {_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high)};
  }
  static I32 ToInt(F32 a) {
    return {_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high)};
  }
  static void StoreInt8(int8_t* p, I32 a) {
    // Gathers the low byte of each lane of a 128-bit half.
    const __m256i pick = _mm256_setr_epi8(
        0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8,
        12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i halves[2] = {a.low, a.high};
    for (int i = 0; i < 2; ++i) {
      const __m256i bytes = _mm256_shuffle_epi8(halves[i], pick);
      const int32_t first = _mm256_extract_epi32(bytes, 0);
      const int32_t second = _mm256_extract_epi32(bytes, 4);
      std::memcpy(p + 8 * i, &first, 4);
      std::memcpy(p + 8 * i + 4, &second, 4);
    }
  }
  static F32 TimesPow2(F32 a, I32 n) {
    return {_mm256_mul_ps(a.low, Pow2(n.low)),
            _mm256_mul_ps(a.high, Pow2(n.high))};
  }

  static Bytes LoadBytes(const uint8_t* p) {
    const __m256i* from = reinterpret_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)};
  }
  static Bytes LowNibbles(Bytes a) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(a.low, mask), _mm256_and_si256(a.high, mask)};
  }
  static Bytes HighNibbles(Bytes a) {
    return LowNibbles(
        {_mm256_srli_epi16(a.low, 4), _mm256_srli_epi16(a.high, 4)});
  }
  static Quad LoadQuad(const int8_t* p) {
    int32_t quad;
    std::memcpy(&quad, p, sizeof quad);
    return _mm256_set1_epi32(quad);
  }
  // Pairs of products must fit 16 bits, so the top bit of w goes separately:
  // 127 * 127 * 2 and 128 * 127 * 2 are both under 32768.
  static I32 Dot(I32 acc, Bytes w, Quad x) {
    const __m256i top = _mm256_set1_epi8(static_cast<char>(0x80));
    const Bytes rest = {_mm256_andnot_si256(top, w.low),
                        _mm256_andnot_si256(top, w.high)};
    const Bytes tops = {_mm256_and_si256(top, w.low),
                        _mm256_and_si256(top, w.high)};
    return DotSmall(DotSmall(acc, rest, x), tops, x);
  }
  static I32 DotSmall(I32 acc, Bytes w, Quad x) {
    const __m256i one = _mm256_set1_epi16(1);
    return {
        _mm256_add_epi32(
            acc.low, _mm256_madd_epi16(_mm256_maddubs_epi16(w.low, x), one)),
        _mm256_add_epi32(
            acc.high, _mm256_madd_epi16(_mm256_maddubs_epi16(w.high, x), one))};
  }

  static F32 DotBfloats(F32 acc, Bytes w, Quad x) {
    const F32 odd = {OddBfloats(w.low), OddBfloats(w.high)};
    const F32 even = {EvenBfloats(w.low), EvenBfloats(w.high)};
    const __m256 x_odd = OddBfloats(x), x_even = EvenBfloats(x);
    return Fma(even, {x_even, x_even}, Fma(odd, {x_odd, x_odd}, acc));
  }

  // Inlined at once: the compiler takes calls that only prefetch for useless.
  [[gnu::always_inline]] static void Prefetch(const void* p) {
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
  }

 private:
  static __m256 EvenBfloats(__m256i a) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(a, 16));
  }
  static __m256 OddBfloats(__m256i a) {
    return _mm256_castsi256_ps(
        _mm256_and_si256(a, _mm256_set1_epi32(int32_t(0xffff0000))));
  }
  static __m128i Load128(const uint16_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static __m128i Load64(const uint8_t* p) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  }
  static __m256 WidenBfloat16(__m128i halves) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  // In the low half of each lane.
  static __m256i RoundBfloat16(__m256 a) {
    const __m256i bits = _mm256_castps_si256(a);
    const __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(
        _mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    return _mm256_srli_epi32(
        Select(_mm256_cmp_ps(a, a, _CMP_UNORD_Q), quiet, rounded), 16);
  }
  // Exponent and mantissa where a half has them make 2^-8 of the number; NaN
  // is what carries into the exponent's top bit.
  static __m256 WidenFp8(__m128i codes) {
    const __m128i half =
        _mm_and_si128(_mm_slli_epi16(_mm_cvtepi8_epi16(codes), 7),
                      _mm_set1_epi16(int16_t(0xbf80)));
    const __m128i top = _mm_and_si128(_mm_add_epi16(half, _mm_set1_epi16(0x80)),
                                      _mm_set1_epi16(0x4000));
    return _mm256_mul_ps(_mm256_cvtph_ps(_mm_or_si128(half, top)),
                         _mm256_set1_ps(0x1p8f));
  }
  // As FloatToFp8, in the low byte of each lane.
  static __m256i RoundFp8(__m256 a) {
    const __m256i bits = _mm256_castps_si256(a);
    const __m256i all = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
    const __m256i capped = _mm256_min_epi32(all, _mm256_set1_epi32(0x43e00000));
    const __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(capped, 20), _mm256_set1_epi32(1));
    const __m256i offset = _mm256_set1_epi32(0x7ffff - ((127 - 7) << 23));
    const __m256i normal = _mm256_srli_epi32(
        _mm256_add_epi32(_mm256_add_epi32(capped, offset), odd), 20);
    const __m256i small = _mm256_sub_epi32(
        _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(capped),
                                          _mm256_set1_ps(0x1p14f))),
        _mm256_set1_epi32(0x46800000));
    const __m256i is_small =
        _mm256_cmpgt_epi32(_mm256_set1_epi32(0x3c800000), capped);
    const __m256i code =
        Select(_mm256_cmp_ps(a, a, _CMP_UNORD_Q), _mm256_set1_epi32(0x7f),
               Select(_mm256_castsi256_ps(is_small), small, normal));
    const __m256i sign =
        _mm256_and_si256(_mm256_srli_epi32(bits, 24), _mm256_set1_epi32(0x80));
    return _mm256_or_si256(code, sign);
  }
  static __m256 WidenNibbles(__m128i bytes, bool high) {
    const __m256i wide = _mm256_cvtepu8_epi32(bytes);
    const __m256i nibble = high ? _mm256_srli_epi32(wide, 4)
                                : _mm256_and_si256(wide, _mm256_set1_epi32(15));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(nibble, _mm256_set1_epi32(8)));
  }
  // a where the mask's sign bit is set, else b.
  static __m256i Select(__m256 mask, __m256i a, __m256i b) {
    return _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(b), _mm256_castsi256_ps(a), mask));
  }
  static __m256 Pow2(__m256i n) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }
};

}  // namespace penstock
