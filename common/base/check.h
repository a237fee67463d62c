#pragma once

#include <sstream>

namespace penstock {

// Prints what was violated, and where, then aborts. Built only by CHECK.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return message_; }

 private:
  std::ostringstream message_;
};

// Gives both arms of CHECK's conditional the type void.
struct CheckVoidify {
  void operator&(std::ostream&) const {}
};

}  // namespace penstock

// For errors of the programmer only, on in every build; what the outside can
// cause is an absl::Status. CHECK(a < b) << "what a and b are";
#define CHECK(condition)                              \
  (__builtin_expect(static_cast<bool>(condition), 1)) \
      ? static_cast<void>(0)                          \
      : ::penstock::CheckVoidify() &                  \
            ::penstock::CheckFailure(__FILE__, __LINE__, #condition).stream()
