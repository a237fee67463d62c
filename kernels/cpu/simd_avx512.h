#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace penstock {

// The operations of SimdScalar in AVX-512 (F, BW, VL, VNNI; BF16 if kBf16). For
// sources that are compiled for it only.
template <bool kBf16>
struct SimdAvx512Of {
  static constexpr const char* kName = kBf16 ? "avx512_bf16" : "avx512";
  static constexpr int kTileRows = 6;
  static constexpr int kFloatTileRows = 8;
  static constexpr int kWideTileRows = 4;
  static constexpr bool kDotsBfloats = kBf16;
  static constexpr int kQueryTile = 6;

  using F32 = __m512;
  using I32 = __m512i;
  using Bytes = __m512i;
  using Quad = __m512i;

  static F32 Zero() { return _mm512_setzero_ps(); }
  static F32 Set(float x) { return _mm512_set1_ps(x); }
  static F32 Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(float* p, F32 a) { _mm512_storeu_ps(p, a); }
  static F32 Add(F32 a, F32 b) { return _mm512_add_ps(a, b); }
  static F32 Sub(F32 a, F32 b) { return _mm512_sub_ps(a, b); }
  static F32 Mul(F32 a, F32 b) { return _mm512_mul_ps(a, b); }
  static F32 Div(F32 a, F32 b) { return _mm512_div_ps(a, b); }
  static F32 Fma(F32 a, F32 b, F32 c) { return _mm512_fmadd_ps(a, b, c); }
  static F32 Max(F32 a, F32 b) { return _mm512_max_ps(a, b); }
  static F32 Min(F32 a, F32 b) { return _mm512_min_ps(a, b); }
  static F32 Abs(F32 a) { return _mm512_abs_ps(a); }
  static F32 KeepFirst(int count, F32 a, F32 b) {
    const int clamped = count < 0 ? 0 : count > 16 ? 16 : count;
    return _mm512_mask_mov_ps(b, static_cast<__mmask16>((1u << clamped) - 1),
                              a);
  }
  static float Sum(F32 a) {
    const __m256 eight = _mm256_add_ps(Low(a), High(a));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                             _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
  }
  static float Largest(F32 a) {
    const __m256 eight = _mm256_max_ps(High(a), Low(a));
    __m128 four = _mm_max_ps(_mm256_extractf128_ps(eight, 1),
                             _mm256_castps256_ps128(eight));
    four = _mm_max_ps(_mm_movehl_ps(four, four), four);
    return _mm_cvtss_f32(_mm_max_ss(_mm_movehdup_ps(four), four));
  }
  static bool Finite(F32 a) {
    return _mm512_cmp_ps_mask(Abs(a), Set(__builtin_inff()), _CMP_LT_OQ) ==
           0xffff;
  }

  static F32 LoadHalf(const uint16_t* p) {
    return _mm512_cvtph_ps(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static void StoreHalf(uint16_t* p, F32 a) {
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(p),
        _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static F32 LoadBfloat16(const uint16_t* p) {
    const __m512i wide = _mm512_cvtepu16_epi32(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
  static void StoreBfloat16(uint16_t* p, F32 a) {
    const __m512i bits = _mm512_castps_si512(a);
    const __m512i odd =
        _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(
        _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __m512i kept = _mm512_mask_mov_epi32(
        rounded, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), quiet);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16)));
  }
  static void StoreBfloats(uint16_t* p, float least, F32 a) {
    const __mmask16 kept = _mm512_cmp_ps_mask(Abs(a), Set(least), _CMP_NLT_UQ);
    if constexpr (kBf16) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                          (__m256i)_mm512_maskz_cvtneps_pbh(kept, a));
    } else {
      StoreBfloat16(p, _mm512_maskz_mov_ps(kept, a));
    }
  }
  // Exponent and mantissa where a half has them make 2^-8 of the number; NaN
  // is what carries into the exponent's top bit.
  static F32 LoadFp8(const uint8_t* p) {
    const __m256i wide = _mm256_cvtepi8_epi16(Load128(p));
    const __m256i half = _mm256_and_si256(_mm256_slli_epi16(wide, 7),
                                          _mm256_set1_epi16(int16_t(0xbf80)));
    const __m256i top =
        _mm256_and_si256(_mm256_add_epi16(half, _mm256_set1_epi16(0x80)),
                         _mm256_set1_epi16(0x4000));
    return _mm512_mul_ps(_mm512_cvtph_ps(_mm256_or_si256(half, top)),
                         Set(0x1p8f));
  }
  // As FloatToFp8.
  static void StoreFp8(uint8_t* p, F32 a) {
    const __m512i bits = _mm512_castps_si512(a);
    const __m512i all = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
    const __m512i capped = _mm512_min_epi32(all, _mm512_set1_epi32(0x43e00000));
    const __m512i odd =
        _mm512_and_si512(_mm512_srli_epi32(capped, 20), _mm512_set1_epi32(1));
    const __m512i offset = _mm512_set1_epi32(0x7ffff - ((127 - 7) << 23));
    const __m512i normal = _mm512_srli_epi32(
        _mm512_add_epi32(_mm512_add_epi32(capped, offset), odd), 20);
    const __m512i small =
        _mm512_sub_epi32(_mm512_castps_si512(_mm512_add_ps(
                             _mm512_castsi512_ps(capped), Set(0x1p14f))),
                         _mm512_set1_epi32(0x46800000));
    __m512i code = _mm512_mask_mov_epi32(
        normal, _mm512_cmplt_epi32_mask(capped, _mm512_set1_epi32(0x3c800000)),
        small);
    code = _mm512_mask_mov_epi32(code, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q),
                                 _mm512_set1_epi32(0x7f));
    const __m512i sign =
        _mm512_and_si512(_mm512_srli_epi32(bits, 24), _mm512_set1_epi32(0x80));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm512_cvtepi32_epi8(_mm512_or_si512(code, sign)));
  }
  static F32 LoadInt8(const uint8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(Load128(p)));
  }
  // The permutation reads the low four bits of a lane only.
  static F32 LoadNibbles(const uint8_t* p, bool high) {
    const __m512 numbers =
        _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    const __m512i wide = _mm512_cvtepu8_epi32(Load128(p));
    return _mm512_permutexvar_ps(high ? _mm512_srli_epi32(wide, 4) : wide,
                                 numbers);
  }

  static I32 SetInt(int32_t x) { return _mm512_set1_epi32(x); }
  static I32 AddInt(I32 a, I32 b) { return _mm512_add_epi32(a, b); }
  static int32_t SumInt(I32 a) { return _mm512_reduce_add_epi32(a); }
  static F32 ToFloat(I32 a) { return _mm512_cvtepi32_ps(a); }
  static I32 ToInt(F32 a) { return _mm512_cvtps_epi32(a); }
  static void StoreInt8(int8_t* p, I32 a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
  }
  static F32 TimesPow2(F32 a, I32 n) {
    const __m512i bits =
        _mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23);
    return _mm512_mul_ps(a, _mm512_castsi512_ps(bits));
  }

  static Bytes LoadBytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static Bytes LowNibbles(Bytes a) {
    return _mm512_and_si512(a, _mm512_set1_epi8(15));
  }
  static Bytes HighNibbles(Bytes a) {
    return _mm512_and_si512(_mm512_srli_epi16(a, 4), _mm512_set1_epi8(15));
  }
  static Quad LoadQuad(const int8_t* p) {
    int32_t quad;
    std::memcpy(&quad, p, sizeof quad);
    return _mm512_set1_epi32(quad);
  }
  static I32 Dot(I32 acc, Bytes w, Quad x) {
    return _mm512_dpbusd_epi32(acc, w, x);
  }
  static I32 DotSmall(I32 acc, Bytes w, Quad x) {
    return _mm512_dpbusd_epi32(acc, w, x);
  }

  static F32 DotBfloats(F32 acc, Bytes w, Quad x) {
    if constexpr (kBf16) {
      return _mm512_dpbf16_ps(acc, (__m512bh)w, (__m512bh)x);
    } else {
      return Fma(EvenBfloats(w), EvenBfloats(x),
                 Fma(OddBfloats(w), OddBfloats(x), acc));
    }
  }

  // Inlined at once: the compiler takes calls that only prefetch for useless.
  [[gnu::always_inline]] static void Prefetch(const void* p) {
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
  }

 private:
  static F32 EvenBfloats(__m512i a) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(a, 16));
  }
  static F32 OddBfloats(__m512i a) {
    return _mm512_castsi512_ps(
        _mm512_and_si512(a, _mm512_set1_epi32(int32_t(0xffff0000))));
  }
  static __m128i Load128(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static __m256 Low(F32 a) { return _mm512_castps512_ps256(a); }
  static __m256 High(F32 a) {
    return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1));
  }
};

using SimdAvx512 = SimdAvx512Of<false>;
using SimdAvx512Bf16 = SimdAvx512Of<true>;

}  // namespace penstock
