#pragma once

// Included first by every source of a woven copy (weave.py): many mutants in
// one build, each asleep until the environment variable MUTANT names it. Never
// part of the product. Any thread.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

namespace mutants {

inline constexpr size_t kMost = 1 << 19;

// A byte for each mutant, set once its place has run. In the file that
// MUTANTS_REACHED names, so that what a child process reached counts too.
inline unsigned char* MapReached() {
  static unsigned char none[kMost];
  const char* name = std::getenv("MUTANTS_REACHED");
  if (name == nullptr) return none;
  const int file = open(name, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, kMost) != 0) std::abort();
  void* bytes =
      mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (bytes == MAP_FAILED) std::abort();
  return static_cast<unsigned char*>(bytes);
}

inline int ReadChosen() {
  const char* number = std::getenv("MUTANT");
  return number == nullptr ? 0 : std::atoi(number);
}

inline unsigned char* const reached = MapReached();
inline const int chosen = ReadChosen();

// Whether the mutant `number` (from 1) is awake.
[[gnu::always_inline]] inline bool On(int number) {
  reached[number] = 1;
  return number == chosen;
}

// A binary operator of either meaning, at the precedence of the one written:
//   a < Or<3>{} < b    is    a < b, and a <= b while mutant 3 is awake.
template <int number>
struct Or {};

template <int number, typename Left>
struct Pending {
  const Left& left;
};

#define MUTANTS_EITHER(op, other)                                  \
  template <int number, typename Left>                             \
  [[gnu::always_inline]] inline Pending<number, Left> operator op( \
      const Left& left, Or<number>) {                              \
    return {left};                                                 \
  }                                                                \
  template <int number, typename Left, typename Right>             \
  requires requires(const Left& a, const Right& b) {               \
    a op b;                                                        \
    a other b;                                                     \
  }                                                                \
  [[gnu::always_inline]] inline auto operator op(                  \
      const Pending<number, Left>& it, const Right& right) {       \
    return On(number) ? it.left other right : it.left op right;    \
  }

MUTANTS_EITHER(<, <=)
MUTANTS_EITHER(<=, <)
MUTANTS_EITHER(>, >=)
MUTANTS_EITHER(>=, >)
MUTANTS_EITHER(==, !=)
MUTANTS_EITHER(!=, ==)
MUTANTS_EITHER(+, -)
MUTANTS_EITHER(-, +)
#undef MUTANTS_EITHER

// a += Or<3>{} += b, which groups from the right.
template <int number, typename Right>
struct Operand {
  const Right& right;
};

#define MUTANTS_EITHER(op, other)                                   \
  template <int number, typename Right>                             \
  [[gnu::always_inline]] inline Operand<number, Right> operator op( \
      Or<number>&&, const Right& right) {                           \
    return {right};                                                 \
  }                                                                 \
  template <int number, typename Left, typename Right>              \
  requires requires(Left & a, const Right& b) {                     \
    a op b;                                                         \
    a other b;                                                      \
  }                                                                 \
  [[gnu::always_inline]] inline Left& operator op(                  \
      Left& left, const Operand<number, Right>& it) {               \
    return On(number) ? left other it.right : left op it.right;     \
  }

MUTANTS_EITHER(+=, -=)
MUTANTS_EITHER(-=, +=)
#undef MUTANTS_EITHER

// Or<3>{}->*x   is   ++x, and --x while mutant 3 is awake.
template <int number, typename Value>
requires requires(Value& value) { --value; }
[[gnu::always_inline]] inline decltype(auto) operator->*(Or<number>,
                                                         Value& value) {
  return On(number) ? --value : ++value;
}

}  // namespace mutants
