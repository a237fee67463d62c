#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "common/model/text/jinja/error.h"

namespace penstock::jinja {

// What one rendering may cost at most.
struct Limits {
  int64_t steps = 2'000'000;           // expressions and statements
  int64_t bytes = int64_t{256} << 20;  // of all values made on the way
  int64_t output = int64_t{64} << 20;  // of the rendered text
  int depth = 1000;                    // of expressions and bodies at work
};

// Counts down the limits of one rendering: RESOURCE_EXHAUSTED beyond them.
class Budget {
 public:
  explicit Budget(const Limits& limits) : left_(limits) {}

  absl::Status TakeSteps(int64_t count, int line) {
    left_.steps -= count;
    return left_.steps < 0 ? Exhausted(line, "takes too many steps")
                           : absl::OkStatus();
  }
  // Call before making what is paid for.
  absl::Status TakeBytes(size_t count, int line) {
    if (count > static_cast<size_t>(left_.bytes)) {
      left_.bytes = 0;
      return Exhausted(line, "makes too much text on the way");
    }
    left_.bytes -= static_cast<int64_t>(count);
    return absl::OkStatus();
  }
  // One step down the call stack, for as long as it lives. Check before going
  // on: macros call macros.
  class Level {
   public:
    explicit Level(Budget& budget) : budget_(budget) { ++budget_.depth_; }
    ~Level() { --budget_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

    absl::Status Check(int line) const {
      return budget_.depth_ > budget_.left_.depth
                 ? Exhausted(line, "calls itself too deep")
                 : absl::OkStatus();
    }

   private:
    Budget& budget_;
  };

  absl::Status TakeOutput(size_t count, int line) {
    if (count > static_cast<size_t>(left_.output)) {
      left_.output = 0;
      return Exhausted(line, "writes too much text");
    }
    left_.output -= static_cast<int64_t>(count);
    return absl::OkStatus();
  }

 private:
  Limits left_;
  int depth_ = 0;
};

}  // namespace penstock::jinja
