#pragma once

#include <cstdint>
#include <mutex>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "common/env/clock.h"

namespace penstock {

// Shows how far a load is: on a terminal a bar that is redrawn in place and
// taken away in the end, elsewhere a line now and then. Says nothing of loads
// that take less than a moment. Add may be called from any thread; the stream
// is written under a lock of the display's own.
class LoadDisplay {
 public:
  struct Options {
    std::string name;  // of the model
    bool terminal = false;
    std::ostream* out = nullptr;   // outlives the display
    const Clock* clock = nullptr;  // outlives the display, any thread
  };

  explicit LoadDisplay(Options options);
  ~LoadDisplay();
  LoadDisplay(const LoadDisplay&) = delete;
  LoadDisplay& operator=(const LoadDisplay&) = delete;

  // As LoadProgress: `more` bytes of `total` of a stage are done.
  void Add(absl::string_view stage, uint64_t more, uint64_t total);

 private:
  void Draw(Instant now);

  const Options options_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::string stage_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
  Instant next_;  // not to be drawn before
  bool drawn_ = false;
};

}  // namespace penstock
