#include "common/runtime/load/model_loader.h"

#include <atomic>
#include <vector>

#include "common/runtime/load/thread_for.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr char kFolder[] = PENSTOCK_TEST_DATA "/families/qwen2";

TEST(ThreadForTest, CallsEachIndexOnce) {
  for (int threads : {1, 3, 8}) {
    std::vector<std::atomic<int>> calls(100);
    ThreadFor(threads)(100, [&](int64_t i) { ++calls[i]; });
    for (const auto& count : calls) EXPECT_EQ(count, 1);
    ThreadFor(threads)(0, [](int64_t) { FAIL(); });
  }
}

TEST(ModelLoaderTest, ThreadsDoNotChangeTheModel) {
  auto one = LoadModel({.path = kFolder, .weights = "q4_0", .threads = 1});
  auto many = LoadModel({.path = kFolder, .weights = "Q4_0", .threads = 4});
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_EQ((*one)->spec().content, (*many)->spec().content);
  const TensorView& a = (*one)->weights().layers[0].gate;
  const TensorView& b = (*many)->weights().layers[0].gate;
  EXPECT_EQ(a.type, TensorType::kQ4_0);
  EXPECT_EQ(a.data, b.data);
}

TEST(ModelLoaderTest, IdOfATypeWithoutConverting) {
  auto whole = LoadModel({.path = kFolder, .weights = "q4_0"});
  auto text = LoadModel({.path = kFolder, .weights = "q4_0", .convert = false});
  auto plain = LoadModel({.path = kFolder});
  ASSERT_TRUE(whole.ok() && text.ok() && plain.ok());
  EXPECT_EQ((*whole)->spec().content, (*text)->spec().content);
  EXPECT_NE((*plain)->spec().content, (*text)->spec().content);
  EXPECT_EQ((*text)->weights().layers[0].gate.type,
            (*plain)->weights().layers[0].gate.type);
}

TEST(ModelLoaderTest, TypeThatCannotBeMade) {
  for (const char* type : {"q4_k", "q9", "auto"}) {
    auto model = LoadModel({.path = kFolder, .weights = type});
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(model.status().message()), HasSubstr("Q8_0"));
  }
}

}  // namespace
}  // namespace penstock
