#pragma once

namespace penstock {

// Picks one lambda for each alternative of a variant.
template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace penstock
