#include "tools/penstock/text_lines.h"

#include <memory>
#include <sstream>
#include <string>

#include "common/model/text/small_vocabulary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

// Ids are bytes, then <s> (256) and other special tokens.
class TextLinesTest : public ::testing::Test {
 protected:
  TextLinesTest() : tokenizer_(*CreateTokenizer(SmallVocabulary())) {}

  std::string Tokenize(LineFormat format, const std::string& input,
                       SpecialTokens special = SpecialTokens::kParse) {
    std::istringstream in(input);
    std::ostringstream out;
    status_ = TokenizeLines(*tokenizer_, format, special, in, out);
    return out.str();
  }

  std::string Detokenize(LineFormat format, const std::string& input) {
    std::istringstream in(input);
    std::ostringstream out;
    status_ = DetokenizeLines(*tokenizer_, format, in, out);
    return out.str();
  }

  const std::unique_ptr<Tokenizer> tokenizer_;
  absl::Status status_;
};

TEST_F(TextLinesTest, TextToIdsAndBack) {
  EXPECT_EQ(Tokenize(LineFormat::kText, "ab\n\nc"), "97 98\n\n99\n");
  EXPECT_TRUE(status_.ok());
  EXPECT_EQ(Detokenize(LineFormat::kText, "97 98\n\n 99 \n"), "ab\n\nc\n");
  EXPECT_TRUE(status_.ok());
}

TEST_F(TextLinesTest, JsonToIdsAndBack) {
  EXPECT_EQ(Tokenize(LineFormat::kJson, R"({"text":"a\nb"})"),
            "{\"ids\":[97,10,98]}\n");
  EXPECT_EQ(Detokenize(LineFormat::kJson, R"({"ids":[97,10,98]})"),
            "{\"text\":\"a\\nb\"}\n");
}

TEST_F(TextLinesTest, LineSaysWhetherSpecialTokensAreParsed) {
  EXPECT_EQ(Tokenize(LineFormat::kText, "<s>"), "256\n");
  EXPECT_EQ(Tokenize(LineFormat::kText, "<s>", SpecialTokens::kPlain),
            "60 115 62\n");
  EXPECT_EQ(
      Tokenize(LineFormat::kJson, R"({"text":"<s>","parse_special":false})"),
      "{\"ids\":[60,115,62]}\n");
  EXPECT_EQ(Tokenize(LineFormat::kJson, R"({"text":"<s>"})"),
            "{\"ids\":[256]}\n");
}

TEST_F(TextLinesTest, BytesThatAreNoTextBecomeReplacements) {
  EXPECT_EQ(Detokenize(LineFormat::kJson, R"({"ids":[97,255]})"),
            "{\"text\":\"a\\ufffd\"}\n");
}

TEST_F(TextLinesTest, JsonStaysOneLineByUnicodeRulesToo) {
  // U+2028, a line separator.
  EXPECT_EQ(Detokenize(LineFormat::kJson, R"({"ids":[226,128,168]})"),
            "{\"text\":\"\\u2028\"}\n");
}

TEST_F(TextLinesTest, BadLineIsNamedAfterTheGoodOnes) {
  EXPECT_EQ(Tokenize(LineFormat::kJson, "{\"text\":\"a\"}\n{\"text\":1}\n"),
            "{\"ids\":[97]}\n");
  EXPECT_EQ(status_.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status_.message()), HasSubstr("line 2"));
  EXPECT_THAT(std::string(status_.message()), HasSubstr("text"));
}

TEST_F(TextLinesTest, EachKindOfBadInput) {
  for (const char* line :
       {"", "[]", "{", "{}", R"({"text":"a","parse_special":1})",
        R"({"text":"\ud800"})"}) {
    Tokenize(LineFormat::kJson, std::string(line) + "\n");
    EXPECT_EQ(status_.code(), absl::StatusCode::kInvalidArgument) << line;
  }
  Tokenize(LineFormat::kText, "\xff\n");
  EXPECT_EQ(status_.code(), absl::StatusCode::kInvalidArgument);
  for (const char* line : {"{}", R"({"ids":[1.5]})", R"({"ids":[-1]})",
                           R"({"ids":[300]})", R"({"ids":[4294967296]})"}) {
    Detokenize(LineFormat::kJson, line);
    EXPECT_EQ(status_.code(), absl::StatusCode::kInvalidArgument) << line;
  }
  for (const char* line : {"x", "-1", "300", "99999999999999999999"}) {
    Detokenize(LineFormat::kText, line);
    EXPECT_EQ(status_.code(), absl::StatusCode::kInvalidArgument) << line;
  }
}

}  // namespace
}  // namespace penstock
