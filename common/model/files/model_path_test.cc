#include "common/model/files/model_path.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

TEST(ModelPathTest, PartsOfASplitModel) {
  EXPECT_THAT(
      GgufPartPaths("m/big-00001-of-00003.gguf"),
      ElementsAre("m/big-00001-of-00003.gguf", "m/big-00002-of-00003.gguf",
                  "m/big-00003-of-00003.gguf"));
  for (const char* alone :
       {"m/big.gguf", "m/big-00002-of-00003.gguf", "-00001-of-00003.gguf",
        "big-00001-of-00000.gguf", "big-0001-of-00003.gguf", "folder", ""}) {
    EXPECT_THAT(GgufPartPaths(alone), ElementsAre(alone));
  }
  EXPECT_TRUE(IsLaterGgufPart("big-00002-of-00003.gguf"));
  EXPECT_FALSE(IsLaterGgufPart("big-00001-of-00003.gguf"));
  EXPECT_FALSE(IsLaterGgufPart("big.gguf"));
}

TEST(ModelPathTest, NamesOfModels) {
  EXPECT_EQ(ModelNameOf("models/tiny.Q4_1.gguf"), "tiny.Q4_1");
  EXPECT_EQ(ModelNameOf("models/SmolLM2-1.7B/"), "SmolLM2-1.7B");
  EXPECT_EQ(ModelNameOf("big-00001-of-00003.gguf"), "big");
  EXPECT_EQ(ModelNameOf("tiny"), "tiny");
}

}  // namespace
}  // namespace penstock
