#include "common/model/files/testing/gguf_mutator.h"

#include <cstdint>
#include <vector>

#include "common/model/files/testing/gguf_exercise.h"
#include "gtest/gtest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace penstock {
namespace {

TEST(GgufMutatorTest, SeedsAreValid) {
  GgufMutator mutator(1);
  for (const GgufDocument& seed : mutator.seeds()) {
    EXPECT_EQ(ExerciseGguf(seed.Encode()), std::nullopt);
  }
}

TEST(GgufMutatorTest, EqualSeedsGiveEqualFiles) {
  GgufMutator first(7), second(7), other(8);
  int differ = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<uint8_t> file = first.Next();
    ASSERT_EQ(file, second.Next());
    differ += file != other.Next();
  }
  EXPECT_GT(differ, 50);
}

TEST(GgufFuzzTest, EntryPointTakesAnything) {
  GgufMutator mutator(3);
  EXPECT_EQ(LLVMFuzzerTestOneInput(nullptr, 0), 0);
  for (int i = 0; i < 100; ++i) {
    std::vector<uint8_t> file = mutator.Next();
    EXPECT_EQ(LLVMFuzzerTestOneInput(file.data(), file.size()), 0);
  }
}

}  // namespace
}  // namespace penstock
