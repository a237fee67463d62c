#pragma once

namespace penstock {

// e^x to about 1 unit in the last place, x clamped to [-87, 88]; of NaN, NaN.
// The same operations, in the same order, on every instruction set.
template <class V>
typename V::F32 Exp(typename V::F32 x) {
  using F32 = typename V::F32;
  // In this order a NaN passes; see SimdScalar::Max.
  x = V::Min(V::Set(88.0f), V::Max(V::Set(-87.0f), x));
  const auto n = V::ToInt(V::Mul(x, V::Set(1.44269504088896341f)));
  const F32 whole = V::ToFloat(n);
  // ln 2 in two parts, so that the first product is exact.
  F32 r = V::Fma(whole, V::Set(-0.693359375f), x);
  r = V::Fma(whole, V::Set(2.12194440e-4f), r);
  F32 p = V::Set(1.9875691500e-4f);
  p = V::Fma(p, r, V::Set(1.3981999507e-3f));
  p = V::Fma(p, r, V::Set(8.3334519073e-3f));
  p = V::Fma(p, r, V::Set(4.1665795894e-2f));
  p = V::Fma(p, r, V::Set(1.6666665459e-1f));
  p = V::Fma(p, r, V::Set(5.0000001201e-1f));
  p = V::Fma(p, V::Mul(r, r), V::Add(r, V::Set(1.0f)));
  return V::TimesPow2(p, n);
}

// x / (1 + e^-x).
template <class V>
typename V::F32 Silu(typename V::F32 x) {
  const auto e = Exp<V>(V::Sub(V::Zero(), x));
  return V::Div(x, V::Add(V::Set(1.0f), e));
}

// 1 - 2 / (e^2x + 1).
template <class V>
typename V::F32 Tanh(typename V::F32 x) {
  const auto e = Exp<V>(V::Add(x, x));
  return V::Sub(V::Set(1.0f), V::Div(V::Set(2.0f), V::Add(e, V::Set(1.0f))));
}

// x / 2 * (1 + tanh u), u = sqrt(2 / pi) * (x + 0.044715 x^3): that is
// x / (1 + e^-2u).
template <class V>
typename V::F32 GeluTanh(typename V::F32 x) {
  const auto cubic = V::Fma(V::Mul(x, x), V::Set(0.044715f), V::Set(1.0f));
  const auto u = V::Mul(V::Mul(x, cubic), V::Set(-2 * 0.797884560802865f));
  return V::Div(x, V::Add(V::Set(1.0f), Exp<V>(u)));
}

template <class V>
typename V::F32 SoftCap(typename V::F32 x, float cap) {
  return V::Mul(V::Set(cap), Tanh<V>(V::Div(x, V::Set(cap))));
}

}  // namespace penstock
