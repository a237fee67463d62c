#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/api/arena.h"

namespace penstock {

// The memory behind an Arena, zeroed: a memfd that can be passed to another
// process and that can neither shrink nor grow nor be mapped writable by
// anybody else. Vanishes with its last user. Owned by the worker host; any
// thread.
class ArenaMemory {
 public:
  // RESOURCE_EXHAUSTED: the system does not give that much.
  static absl::StatusOr<std::unique_ptr<ArenaMemory>> Create(uint64_t bytes);

  ArenaMemory(const ArenaMemory&) = delete;
  ArenaMemory& operator=(const ArenaMemory&) = delete;
  ~ArenaMemory();

  const Arena& arena() const { return arena_; }

 private:
  explicit ArenaMemory(Arena arena) : arena_(arena) {}

  const Arena arena_;
};

}  // namespace penstock
