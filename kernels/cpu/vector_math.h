#pragma once

namespace penstock {

// e^x to about 1 unit in the last place, x clamped to [-87, 88]. The same
// operations, in the same order, on every instruction set.
template <class V>
typename V::F32 Exp(typename V::F32 x) {
  using F32 = typename V::F32;
  x = V::Min(V::Max(x, V::Set(-87.0f)), V::Set(88.0f));
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

}  // namespace penstock
