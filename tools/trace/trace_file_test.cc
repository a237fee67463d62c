#include "tools/trace/trace_file.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TraceFileTest, ReadsJsonLinesInOrderOfTime) {
  const auto trace = ParseTrace(
      R"({"timestamp": 5000, "input_length": 600, "output_length": 7,)"
      R"( "hash_ids": [4, 9]})"
      "\n"
      R"({"timestamp": 3000, "input_length": 512, "output_length": 0,)"
      R"( "hash_ids": [4]})"
      "\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->size(), 2u);
  EXPECT_EQ((*trace)[0].at, absl::ZeroDuration());
  EXPECT_EQ((*trace)[0].input_tokens, 512);
  EXPECT_EQ((*trace)[0].output_tokens, 1);  // something is always made
  EXPECT_EQ((*trace)[1].at, absl::Seconds(2));
  EXPECT_EQ((*trace)[1].output_tokens, 7);
  EXPECT_THAT((*trace)[1].hashes, ElementsAre(4, 9));
}

TEST(TraceFileTest, ReadsCsv) {
  const auto trace = ParseTrace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 18:17:03.9799600,4808,10\r\n"
      "2023-11-16 18:17:04.0319600,0,8\r\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->size(), 2u);
  EXPECT_EQ((*trace)[0].input_tokens, 4808);
  EXPECT_EQ((*trace)[0].output_tokens, 10);
  EXPECT_EQ((*trace)[1].at, absl::Milliseconds(52));
  EXPECT_EQ((*trace)[1].input_tokens, 1);
  EXPECT_TRUE((*trace)[1].hashes.empty());
}

TEST(TraceFileTest, NamesTheLineThatIsWrong) {
  const std::string good =
      R"({"timestamp": 0, "input_length": 1, "output_length": 1})";
  const std::vector<std::string> bad_lines = {
      R"({"timestamp": 0)",
      "7",
      "[]",
      R"({"input_length": 1, "output_length": 1})",
      R"({"timestamp": -1, "input_length": 1, "output_length": 1})",
      R"({"timestamp": 0, "input_length": 1e9, "output_length": 1})",
      R"({"timestamp": 0, "input_length": 1.5, "output_length": 1})",
      R"({"timestamp": 0, "input_length": "1", "output_length": 1})",
      R"({"timestamp": 0, "input_length": 1, "output_length": 99999999999})",
      R"({"timestamp": 0, "input_length": 513, "output_length": 1,)"
      R"( "hash_ids": [1]})",
      R"({"timestamp": 0, "input_length": 1, "output_length": 1,)"
      R"( "hash_ids": 1})",
      R"({"timestamp": 0, "input_length": 1, "output_length": 1,)"
      R"( "hash_ids": [-1]})",
      "\x80",
      "2023-11-16 18:17:03,1,1"};
  for (const std::string& bad : bad_lines) {
    const auto trace = ParseTrace(good + "\n" + bad);
    ASSERT_FALSE(trace.ok()) << bad;
    EXPECT_THAT(std::string(trace.status().message()), HasSubstr("line 2"))
        << bad;
  }
  const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  for (const char* bad :
       {"x,1,1", "2023-11-16 18:17:03,1", "2023-11-16 18:17:03,1,1,1",
        "2023-11-16 18:17:03,-1,1", "2023-11-16 18:17:03,1,99999999999"}) {
    EXPECT_FALSE(ParseTrace(header + bad).ok()) << bad;
  }
}

TEST(TraceFileTest, AnEmptyOrMissingFileIsAnError) {
  EXPECT_FALSE(ParseTrace("").ok());
  EXPECT_FALSE(ParseTrace("\n\n").ok());
  EXPECT_FALSE(ParseTrace("TIMESTAMP,ContextTokens,GeneratedTokens\n").ok());
  EXPECT_TRUE(absl::IsNotFound(
      ReadTraceFile(PENSTOCK_TEST_DATA "/traces/none").status()));
}

TEST(TraceFileTest, ReadsTheRecordedSlice) {
  const auto trace = ReadTraceFile(PENSTOCK_TEST_DATA
                                   "/traces/mooncake_conversation_100.jsonl");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->size(), 100u);
  EXPECT_EQ((*trace)[0].input_tokens, 6758);
  EXPECT_EQ((*trace)[0].hashes.size(), 14u);
}

}  // namespace
}  // namespace penstock
