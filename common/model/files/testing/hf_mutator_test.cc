#include "common/model/files/testing/hf_mutator.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

std::vector<FolderImage> Seeds() {
  const std::string families = PENSTOCK_TEST_DATA "/families/";
  return {ReadFolderImage(families + "llama3.1"),
          ReadFolderImage(families + "smollm3")};
}

TEST(HfMutatorTest, SeedsAreValid) {
  for (const FolderImage& seed : Seeds()) {
    EXPECT_EQ(ExerciseFolder(seed), std::nullopt);
  }
}

TEST(HfMutatorTest, EqualSeedsGiveEqualFolders) {
  HfMutator first(7, Seeds()), second(7, Seeds()), other(8, Seeds());
  int differ = 0;
  for (int i = 0; i < 50; ++i) {
    const FolderImage folder = first.Next(), same = second.Next();
    ASSERT_EQ(folder.config, same.config);
    ASSERT_EQ(folder.index, same.index);
    ASSERT_EQ(folder.shards[0].bytes, same.shards[0].bytes);
    const FolderImage another = other.Next();
    differ += folder.config != another.config ||
              folder.shards[0].bytes != another.shards[0].bytes;
  }
  EXPECT_GT(differ, 20);
}

}  // namespace
}  // namespace penstock
