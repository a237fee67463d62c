#include "common/env/real/entropy.h"

#include <sys/random.h>

#include "common/base/check.h"

namespace penstock {

uint64_t DrawEntropy() {
  uint64_t value = 0;
  while (value == 0) {
    // Reads of at most 256 bytes are never short once the pool is ready.
    const ssize_t got = getrandom(&value, sizeof(value), 0);
    CHECK(got == static_cast<ssize_t>(sizeof(value)))
        << "the system gives no random bytes";
  }
  return value;
}

}  // namespace penstock
