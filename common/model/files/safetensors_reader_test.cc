#include "common/model/files/safetensors_reader.h"

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "common/model/files/testing/safetensors_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using D = SafetensorsDocument;
using E = ModelError;

D TwoTensors() {
  D document;
  document.Add("a.weight", TensorType::kF32, {2, 2}, {1, 2, 3, 4});
  document.Add("b", TensorType::kBF16, {3}, {0.5f, -1, 2});
  return document;
}

TEST(SafetensorsReaderTest, ReadsEachType) {
  D document = TwoTensors();
  document.Add("c", TensorType::kF16, {1, 2}, {-0.25f, 8});
  document.header_start = R"("__metadata__":{"format":"pt"},)";
  const std::vector<uint8_t> file = document.Encode();
  absl::StatusOr<TensorMap> tensors = ReadSafetensors(file, "x.safetensors");
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 3u);
  const TensorView& a = tensors->at("a.weight");
  EXPECT_EQ(a.name, "a.weight");
  EXPECT_THAT(a.shape, ElementsAre(2, 2));
  std::vector<float> row(2);
  DequantizeRow(a, 1, absl::MakeSpan(row));
  EXPECT_THAT(row, ElementsAre(3, 4));
  DequantizeRow(tensors->at("c"), 0, absl::MakeSpan(row));
  EXPECT_THAT(row, ElementsAre(-0.25f, 8));
  row.resize(3);
  DequantizeRow(tensors->at("b"), 0, absl::MakeSpan(row));
  EXPECT_THAT(row, ElementsAre(0.5f, -1, 2));
  EXPECT_EQ(tensors->at("c").data.data() + 4, file.data() + file.size());
}

TEST(SafetensorsReaderTest, OrderInHeaderIsFree) {
  D document = TwoTensors();
  // Entries swapped, bytes where they were.
  document.tensors[0].begin = 6;
  document.tensors[0].end = 22;
  document.tensors[1].begin = 0;
  document.tensors[1].end = 6;
  EXPECT_TRUE(ReadSafetensors(document.Encode(), "x").ok());
}

struct Case {
  const char* name;
  ModelError error;
  const char* message;
  std::function<void(D&)> edit;
};

std::vector<Case> Cases() {
  return {
      {"length past the end", E::kHeaderLength, "header length",
       [](D& d) { d.header_length = 1 << 20; }},
      {"length overflows", E::kHeaderLength, "header length",
       [](D& d) { d.header_length = UINT64_MAX; }},
      {"header cut", E::kJson, "byte", [](D& d) { d.header_length = 30; }},
      {"bad UTF-8", E::kJson, "header",
       [](D& d) { d.header_start = "\"\xC0\x80\":{},"; }},
      {"metadata with an object", E::kTensorFields, "an object",
       [](D& d) { d.header_start = R"("__metadata__":{"a":{}},)"; }},
      {"metadata with a number", E::kTensorFields, "__metadata__",
       [](D& d) { d.header_start = R"("__metadata__":{"a":1},)"; }},
      {"tensor is a number", E::kTensorFields, "x",
       [](D& d) { d.header_start = R"("x":1,)"; }},
      {"tensor is a list", E::kTensorFields, "an array",
       [](D& d) { d.header_start = R"("x":[[1]],)"; }},
      {"tensor is null", E::kTensorFields, "null",
       [](D& d) { d.header_start = R"("x":null,)"; }},
      {"tensor is empty", E::kTensorFields, "missing",
       [](D& d) { d.header_start = R"("x":{},)"; }},
      {"dtype twice", E::kTensorFields, "dtype",
       [](D& d) { d.header_start = R"("x":{"dtype":"F32","dtype":"F32"},)"; }},
      {"unknown field", E::kTensorFields, "stride",
       [](D& d) { d.header_start = R"("x":{"stride":[1]},)"; }},
      {"negative extent", E::kTensorFields, "negative",
       [](D& d) { d.header_start = R"("x":{"shape":[-1]},)"; }},
      {"fraction", E::kTensorFields, "fraction",
       [](D& d) { d.header_start = R"("x":{"shape":[1.5]},)"; }},
      {"truth value", E::kTensorFields, "truth",
       [](D& d) { d.header_start = R"("x":{"shape":[true]},)"; }},
      {"one offset", E::kTensorFields, "missing",
       [](D& d) {
         d.header_start =
             R"("x":{"dtype":"F32","shape":[1],"data_offsets":[0]},)";
       }},
      {"empty name", E::kTensorName, "tensor name",
       [](D& d) { d.tensors[0].name = ""; }},
      {"name twice", E::kDuplicateTensor, "again",
       [](D& d) { d.tensors[1] = d.tensors[0]; }},
      {"type by name", E::kTensorType, "F8_E4M3",
       [](D& d) { d.tensors[0].dtype = "F8_E4M3"; }},
      {"scalar", E::kDimensionCount, "0 dimensions",
       [](D& d) { d.tensors[0].shape = {}; }},
      {"five dimensions", E::kDimensionCount, "5 dimensions",
       [](D& d) {
         d.tensors[0].shape = {1, 1, 1, 1, 4};
       }},
      {"zero extent", E::kZeroDimension, "shape",
       [](D& d) {
         d.tensors[0].shape = {0, 4};
       }},
      {"bytes overflow", E::kShapeOverflow, "2^63",
       [](D& d) {
         d.tensors[0].shape = {1ull << 40, 1ull << 40};
       }},
      {"bytes against shape", E::kTensorBytes, "16 for",
       [](D& d) { d.tensors[0].end = 12; }},
      {"offsets backwards", E::kTensorOutOfFile, "data_offsets",
       [](D& d) { d.tensors[0].begin = 17; }},
      {"out of file", E::kTensorOutOfFile, "cut short",
       [](D& d) { d.tensors[1].end = 23; }},
      {"overlap", E::kTensorOverlap, "\"b\"",
       [](D& d) {
         d.tensors[1].begin = 14;
         d.tensors[1].end = 20;
       }},
      {"gap", E::kTensorGap, "\"b\"",
       [](D& d) {
         d.tensors[0].data += "....";
         d.tensors[0].end = 16;
       }},
      {"tail", E::kTensorGap, "3 bytes after", [](D& d) { d.tail = "xyz"; }},
  };
}

TEST(SafetensorsReaderTest, NamesWhatIsWrong) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    D document = TwoTensors();
    c.edit(document);
    absl::Status status = ReadSafetensors(document.Encode(), "x.st").status();
    EXPECT_EQ(ModelErrorOf(status), c.error) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
    EXPECT_THAT(std::string(status.message()), HasSubstr("x.st"));
  }
}

TEST(SafetensorsReaderTest, EveryCutIsAnError) {
  const std::vector<uint8_t> file = TwoTensors().Encode();
  for (size_t size = 0; size < file.size(); ++size) {
    absl::Status status = ReadSafetensors({file.data(), size}, "x.st").status();
    EXPECT_TRUE(ModelErrorOf(status).has_value()) << size << " " << status;
  }
}

// Nesting must not cost stack or heap.
TEST(SafetensorsReaderTest, DeepNestingStopsAtOnce) {
  std::string header(1 << 20, '[');
  std::string file(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, sizeof(length));
  file += header;
  absl::Status status =
      ReadSafetensors(
          {reinterpret_cast<const uint8_t*>(file.data()), file.size()}, "x.st")
          .status();
  EXPECT_EQ(ModelErrorOf(status), E::kTensorFields) << status;
}

}  // namespace
}  // namespace penstock
