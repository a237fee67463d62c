#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "common/env/clock.h"
#include "common/model/block_hash.h"

namespace penstock {

// What happened in a run, a line for each event: the hash of all of them, and
// the last ones themselves. Single-threaded.
class SimLog {
 public:
  // Keeps the last `kept` lines. `hasher` outlives the log.
  SimLog(const BlockHasher* hasher, size_t kept)
      : hasher_(hasher), kept_(kept) {}

  void Add(Instant when, const std::string& line);

  std::vector<std::string> lines() const {
    return {lines_.begin(), lines_.end()};
  }
  // Called with each line as it is added.
  std::function<void(const std::string& line)> on_line;
  // Of every line so far, in order.
  uint64_t hash() const { return hash_; }

 private:
  const BlockHasher* hasher_;
  const size_t kept_;
  std::deque<std::string> lines_;
  uint64_t hash_ = 0;
};

}  // namespace penstock
