#include "common/model/files/gguf_split.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/files/model_file.h"
#include "common/model/files/testing/gguf_builder.h"
#include "common/model/files/testing/tiny_llama.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

// Part `number` of `count`, with one tensor of its own.
GgufDocument Part(int number, int count) {
  GgufDocument document;
  document.Set({"split.no", 2, GgufNumber(static_cast<uint16_t>(number))});
  document.Set({"split.count", 2, GgufNumber(static_cast<uint16_t>(count))});
  document.Set({"split.tensors.count", 5, GgufNumber(int32_t{count})});
  document.tensors.push_back({.name = absl::StrCat("t", number),
                              .dimensions = {2},
                              .type = 0,
                              .data = std::string(8, '\0')});
  return document;
}

absl::StatusOr<TensorMap> Join(const std::vector<GgufDocument>& documents) {
  std::vector<std::vector<uint8_t>> files;
  for (const GgufDocument& document : documents) {
    files.push_back(document.Encode());
  }
  std::vector<GgufReader> parts;
  for (const auto& file : files) {
    const std::string path = absl::StrCat("part", parts.size());
    auto reader = GgufReader::Parse(file, path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    parts.push_back(*std::move(reader));
  }
  return JoinGgufParts(parts);
}

TEST(GgufSplitTest, JoinsPartsInOrder) {
  auto tensors = Join({Part(0, 3), Part(1, 3), Part(2, 3)});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_EQ(tensors->size(), 3u);
  EXPECT_TRUE(tensors->contains("t2"));
}

TEST(GgufSplitTest, OneFileNeedsNoKeys) {
  GgufDocument document = Part(0, 1);
  document.metadata.clear();
  EXPECT_TRUE(Join({document}).ok());
  document.Set({"split.count", 2, GgufNumber(uint16_t{0})});
  EXPECT_TRUE(Join({document}).ok());
}

TEST(GgufSplitTest, NamesWhatDoesNotBelong) {
  GgufDocument foreign = Part(1, 2);
  foreign.tensors[0].name = "t0";
  GgufDocument more = Part(0, 2);
  more.Set({"split.tensors.count", 5, GgufNumber(int32_t{7})});
  struct Case {
    std::vector<GgufDocument> parts;
    ModelError error;
    const char* message;
  };
  for (const Case& c : std::vector<Case>{
           {{Part(0, 3)}, ModelError::kSplit, "part0: split.count: found 3"},
           {{Part(0, 2), Part(0, 2)}, ModelError::kSplit, "part1: split.no"},
           {{Part(0, 2), Part(1, 3)}, ModelError::kSplit, "part1: split.count"},
           {{Part(0, 2), foreign}, ModelError::kDuplicateTensor, "\"t0\""},
           {{more, Part(1, 2)}, ModelError::kSplit, "split.tensors.count"}}) {
    absl::Status status = Join(c.parts).status();
    EXPECT_EQ(ModelErrorOf(status), c.error) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

// The whole model again, from files that are opened by the name of the first.
TEST(GgufSplitTest, OpensPartsBesideTheFirst) {
  const GgufDocument whole = MakeTinyLlama();
  const std::string stem = testing::TempDir() + "/split_llama";
  for (int part = 0; part < 2; ++part) {
    GgufDocument document = part == 0 ? whole : GgufDocument();
    document.tensors.clear();
    for (size_t i = part; i < whole.tensors.size(); i += 2) {
      document.tensors.push_back(whole.tensors[i]);
    }
    document.Set({"split.no", 2, GgufNumber(static_cast<uint16_t>(part))});
    document.Set({"split.count", 2, GgufNumber(uint16_t{2})});
    document.Set({"split.tensors.count", 5,
                  GgufNumber(static_cast<int32_t>(whole.tensors.size()))});
    const std::vector<uint8_t> bytes = document.Encode();
    std::ofstream file(absl::StrCat(stem, "-0000", part + 1, "-of-00002.gguf"),
                       std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  auto split = OpenModelFile(stem + "-00001-of-00002.gguf");
  ASSERT_TRUE(split.ok()) << split.status();
  auto model = OpenModelBytes(whole.Encode());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*split)->weights().layers[1].down.data,
            (*model)->weights().layers[1].down.data);
  EXPECT_NE((*split)->spec().content, (*model)->spec().content);
  const absl::Status second =
      OpenModelFile(stem + "-00002-of-00002.gguf").status();
  EXPECT_EQ(ModelErrorOf(second), ModelError::kSplit) << second;
}

}  // namespace
}  // namespace penstock
