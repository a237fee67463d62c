#include "kernels/cpu/kv_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"

namespace penstock {
namespace {

// Sign, exponent and mantissa of a number of `bits` bits.
struct Format {
  int mantissa;  // bits
  int bias;      // of the exponent
  bool ieee;     // the largest exponent means infinity or NaN
  double largest;
};

Format FormatOf(KvType type) {
  switch (type) {
    case KvType::kF16:
      return {10, 15, true, 65504};
    case KvType::kBf16:
      return {7, 127, true, std::ldexp(255, 127 - 7)};
    case KvType::kFp8:
      return {3, 7, false, 448};
    default:
      CHECK(false) << "no floating-point format";
      return {};
  }
}

double Float(const Format& format, int bits, uint32_t element) {
  const uint32_t sign = element >> (bits - 1);
  const int exponent = static_cast<int>(element >> format.mantissa) &
                       ((1 << (bits - 1 - format.mantissa)) - 1);
  const uint32_t fraction = element & ((1u << format.mantissa) - 1);
  const int top = (1 << (bits - 1 - format.mantissa)) - 1;
  double value;
  if (exponent == top && format.ieee) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity() : NAN;
  } else if (exponent == top && fraction == (1u << format.mantissa) - 1) {
    value = NAN;
  } else if (exponent == 0) {
    value = std::ldexp(fraction, 1 - format.bias - format.mantissa);
  } else {
    value = std::ldexp(fraction + (1u << format.mantissa),
                       exponent - format.bias - format.mantissa);
  }
  return sign ? -value : value;
}

}  // namespace

double KvNumber(KvType type, uint32_t element) {
  switch (type) {
    case KvType::kInt8:
      return static_cast<int8_t>(element);
    case KvType::kInt4:
      return static_cast<int>(element) - 8;
    default:
      return Float(FormatOf(type), Traits(type).bits, element);
  }
}

double RoundToKvType(KvType type, double x) {
  const Format format = FormatOf(type);
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return format.ieee ? x : std::copysign(448, x);
  int exponent;
  std::frexp(x, &exponent);  // x = 0.5 to 1 times 2^exponent
  const int least = 2 - format.bias;
  const int step = std::max(exponent, least) - 1 - format.mantissa;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -step)), step);
  if (std::abs(rounded) <= format.largest) return rounded;
  return std::copysign(
      format.ieee ? std::numeric_limits<double>::infinity() : format.largest,
      x);
}

double KvHeadReader::Number(uint32_t runs, int run, int lane) const {
  const uint8_t* from = page_ + runs;
  const int bits = Traits(layout_.type).bits;
  if (bits == 4) {
    const uint8_t both = from[run / 2 * 16 + lane];
    return KvNumber(layout_.type, run % 2 ? both >> 4 : both & 15);
  }
  from += (run * 16 + lane) * (bits / 8);
  return KvNumber(layout_.type, bits == 8 ? from[0] : from[0] | from[1] << 8);
}

double KvHeadReader::Scale(uint32_t scales, int slot, int i) const {
  const int group = Traits(layout_.type).scale_group;
  if (group == 0) return 1;
  const uint8_t* from = page_ + scales + (i / group * kBlockTokens + slot) * 2;
  return KvNumber(KvType::kBf16, from[0] | from[1] << 8);
}

double KvHeadReader::KeyNumber(int slot, int i) const {
  return Number(0, i, slot);
}
double KvHeadReader::ValueNumber(int slot, int i) const {
  const uint32_t bytes = (head_.value_scales - head_.values) / kBlockTokens;
  return Number(head_.values + slot * bytes, i / 16, i % 16);
}
double KvHeadReader::KeyScale(int slot, int i) const {
  return Scale(head_.key_scales, slot, i);
}
double KvHeadReader::ValueScale(int slot, int i) const {
  return Scale(head_.value_scales, slot, i);
}
double KvHeadReader::Key(int slot, int i) const {
  return KeyNumber(slot, i) * KeyScale(slot, i);
}
double KvHeadReader::Value(int slot, int i) const {
  return ValueNumber(slot, i) * ValueScale(slot, i);
}

}  // namespace penstock
