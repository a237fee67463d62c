// Entry point for libFuzzer; the same path as the seeded gguf_mutation.

#include <cstddef>
#include <cstdint>

#include "common/model/files/testing/gguf_exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::ExerciseGguf({data, size});
  return 0;
}
