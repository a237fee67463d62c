#include "common/model/files/mapped_file.h"

#include <sys/stat.h>

#include <fstream>
#include <string>
#include <utility>

#include "common/model/files/model_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

std::string WriteFile(const std::string& name, absl::string_view text) {
  std::string path = testing::TempDir() + "/mapped_file_test_" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(MappedFileTest, HoldsTheFileAfterAMove) {
  auto opened = MappedFile::Open(WriteFile("text", "hello"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  MappedFile first = *std::move(opened);
  const uint8_t* data = first.bytes().data();
  MappedFile second = std::move(first);
  EXPECT_EQ(second.bytes().data(), data);
  EXPECT_THAT(second.bytes(), testing::ElementsAre('h', 'e', 'l', 'l', 'o'));
  auto other = MappedFile::Open(WriteFile("other", "x"));
  ASSERT_TRUE(other.ok());
  second = *std::move(other);
  EXPECT_THAT(second.bytes(), testing::ElementsAre('x'));
}

TEST(MappedFileTest, RefusesWhatIsNoFile) {
  absl::Status missing = MappedFile::Open("/nonexistent/m.gguf").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(missing.ToString(), HasSubstr("/nonexistent/m.gguf"));

  absl::Status directory = MappedFile::Open(testing::TempDir()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(directory)) << directory;

  absl::Status empty = MappedFile::Open(WriteFile("empty", "")).status();
  EXPECT_TRUE(absl::IsInvalidArgument(empty));
  EXPECT_THAT(empty.ToString(), HasSubstr("empty"));

  // Would block an ordinary open for ever.
  std::string fifo = testing::TempDir() + "/mapped_file_test_fifo";
  ASSERT_TRUE(mkfifo(fifo.c_str(), 0600) == 0 || errno == EEXIST);
  EXPECT_TRUE(absl::IsInvalidArgument(MappedFile::Open(fifo).status()));
}

TEST(OpenModelFileTest, OtherFilesAreNamed) {
  std::string path = WriteFile("page.html", "<html>not a model</html>");
  absl::Status status = OpenModelFile(path).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.ToString(), HasSubstr(path + ": magic: found \"<htm\""));
}

}  // namespace
}  // namespace penstock
