#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock {

// A rare branch that some test has to take: Sometimes<"what happened">() where
// it is taken. Every mark that is linked into a binary is known from its start,
// so that one that never fires is seen too. Costs one relaxed increment; any
// thread.

// A string as a template argument.
template <size_t N>
struct MarkText {
  char text[N];
  // NOLINTNEXTLINE(google-explicit-constructor): what makes the call readable
  constexpr MarkText(const char (&from)[N]) {
    for (size_t i = 0; i < N; ++i) text[i] = from[i];
  }
};

class CoverageMark {
 public:
  explicit CoverageMark(const char* text);  // registers it

  void Hit() { hits_.fetch_add(1, std::memory_order_relaxed); }
  void Reset() { hits_.store(0, std::memory_order_relaxed); }
  absl::string_view text() const { return text_; }
  uint64_t hits() const { return hits_.load(std::memory_order_relaxed); }

 private:
  const char* text_;
  std::atomic<uint64_t> hits_{0};
};

template <MarkText kText>
struct MarkOf {
  static inline CoverageMark mark{kText.text};
};

template <MarkText kText>
void Sometimes() {
  MarkOf<kText>::mark.Hit();
}

struct MarkCount {
  std::string text;
  uint64_t hits = 0;
};

// Every mark of this binary, in order of its text, with how often it was hit
// since the start or the last reset.
std::vector<MarkCount> CoverageMarks();
void ResetCoverageMarks();

}  // namespace penstock
