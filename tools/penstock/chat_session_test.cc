#include "tools/penstock/chat_session.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using Next = ChatSession::Next;

// The roles and contents of a request.
std::string Messages(const ChatSession& session) {
  std::string text;
  const v1::GenerateRequest request = session.request();
  for (const v1::ChatMessage& message : request.messages().messages()) {
    text += message.role() + ":" + message.content() + "|";
  }
  return text;
}

ChatSession::Step Take(ChatSession& session, const std::string& line) {
  const auto step = session.Take(line);
  EXPECT_TRUE(step.ok()) << step.status();
  return step.ok() ? *step : ChatSession::Step();
}

std::string ErrorOf(ChatSession& session, const std::string& line) {
  const auto step = session.Take(line);
  EXPECT_EQ(step.status().code(), absl::StatusCode::kInvalidArgument) << line;
  return std::string(step.status().message());
}

TEST(ChatSession, QuestionsAndAnswersBecomeTheNextRequest) {
  ChatSession session("m");
  EXPECT_EQ(Take(session, "one").next, Next::kAsk);
  EXPECT_EQ(Messages(session), "user:one|");
  EXPECT_EQ(session.request().model(), "m");
  session.Answer("uno");
  Take(session, "two");
  EXPECT_EQ(Messages(session), "user:one|assistant:uno|user:two|");
  session.Drop();
  EXPECT_EQ(Messages(session), "user:one|assistant:uno|");
  Take(session, "//three");
  EXPECT_EQ(Messages(session), "user:one|assistant:uno|user:/three|");
}

TEST(ChatSession, AnEmptyLineAsksNothing) {
  ChatSession session("");
  EXPECT_EQ(Take(session, "").next, Next::kShow);
  EXPECT_EQ(Messages(session), "");
}

TEST(ChatSession, ClearForgetsWhatWasSaidAndKeepsTheSettings) {
  ChatSession session("");
  Take(session, "/set system  Be brief. ");
  Take(session, "/set temperature 0");
  Take(session, "one");
  session.Answer("uno");
  EXPECT_EQ(Take(session, "/clear").next, Next::kShow);
  Take(session, "two");
  EXPECT_EQ(Messages(session), "system:Be brief.|user:two|");
  EXPECT_EQ(session.request().sampling().temperature(), 0);
  EXPECT_TRUE(session.request().sampling().has_temperature());
}

TEST(ChatSession, SettingsAreFieldsOfTheRequest) {
  ChatSession session("");
  for (const char* line :
       {"/set temperature 0.5", "/set top_p 0.9", "/set top_k 40",
        "/set min_p 0.05", "/set seed 18446744073709551615",
        "/set max_tokens 7", "/set mirostat true", "/set ignore_eos yes"}) {
    EXPECT_EQ(Take(session, line).next, Next::kShow);
  }
  const v1::GenerateRequest request = session.request();
  EXPECT_FLOAT_EQ(request.sampling().temperature(), 0.5f);
  EXPECT_FLOAT_EQ(request.sampling().top_p(), 0.9f);
  EXPECT_EQ(request.sampling().top_k(), 40);
  EXPECT_FLOAT_EQ(request.sampling().min_p(), 0.05f);
  EXPECT_EQ(request.sampling().seed(), UINT64_MAX);
  EXPECT_EQ(request.stop().max_tokens(), 7);
  EXPECT_TRUE(request.sampling().mirostat());
  EXPECT_TRUE(request.stop().ignore_eos());
  Take(session, "/set top_k default");
  EXPECT_FALSE(session.request().sampling().has_top_k());
}

TEST(ChatSession, SetShowsEveryName) {
  ChatSession session("");
  Take(session, "/set temperature 0.5");
  const std::string text = Take(session, "/set").text;
  EXPECT_THAT(text, HasSubstr("system = default\n"));
  EXPECT_THAT(text, HasSubstr("\ntemperature = 0.5\n"));
  EXPECT_THAT(text, HasSubstr("\ntop_p = default\n"));
  EXPECT_THAT(text, HasSubstr("\nmax_tokens = default\n"));
}

TEST(ChatSession, WrongSettingsChangeNothingAndSayWhatIsAllowed) {
  ChatSession session("");
  Take(session, "/set top_p 0.5");
  EXPECT_THAT(ErrorOf(session, "/set top_p 2"), HasSubstr("top_p is 2"));
  EXPECT_THAT(ErrorOf(session, "/set top_p x"), HasSubstr("a number"));
  EXPECT_THAT(ErrorOf(session, "/set top_k 1.5"), HasSubstr("whole number"));
  EXPECT_THAT(ErrorOf(session, "/set seed -1"), HasSubstr("0 or more"));
  EXPECT_THAT(ErrorOf(session, "/set mirostat 7"), HasSubstr("true or false"));
  EXPECT_THAT(ErrorOf(session, "/set top_p"), HasSubstr("value is missing"));
  EXPECT_THAT(ErrorOf(session, "/set max_tokens 0"), HasSubstr("max_tokens"));
  EXPECT_THAT(ErrorOf(session, "/set temperature nan"),
              HasSubstr("temperature"));
  const std::string unknown = ErrorOf(session, "/set topp 1");
  EXPECT_THAT(unknown, HasSubstr("'topp'"));
  for (const char* name : {"system", "temperature", "top_p", "top_k", "min_p",
                           "seed", "max_tokens"}) {
    EXPECT_THAT(unknown, HasSubstr(name));
  }
  EXPECT_FLOAT_EQ(session.request().sampling().top_p(), 0.5f);
}

TEST(ChatSession, SaveGivesThePathAndTheMessages) {
  ChatSession session("");
  Take(session, "/set system s");
  Take(session, "é\n\"q\"");
  session.Answer("a");
  const ChatSession::Step step = Take(session, "/save my file.json ");
  EXPECT_EQ(step.next, Next::kSave);
  EXPECT_EQ(step.path, "my file.json");
  EXPECT_FALSE(step.overwrite);
  EXPECT_TRUE(Take(session, "/save -f x").overwrite);
  EXPECT_EQ(nlohmann::json::parse(session.ToJson()),
            nlohmann::json::parse(
                R"({"messages": [{"role": "system", "content": "s"},
                    {"role": "user", "content": "é\n\"q\""},
                    {"role": "assistant", "content": "a"}]})"));
}

TEST(ChatSession, CommandsThatAreNoneAreNotMessages) {
  ChatSession session("");
  EXPECT_THAT(ErrorOf(session, "/foo"), HasSubstr("/help"));
  EXPECT_THAT(ErrorOf(session, "/save"), HasSubstr("/save FILE"));
  EXPECT_THAT(ErrorOf(session, "/save -f"), HasSubstr("/save FILE"));
  EXPECT_THAT(ErrorOf(session, "/clear now"), HasSubstr("nothing after it"));
  EXPECT_THAT(ErrorOf(session, "a\xFF"), HasSubstr("UTF-8"));
  EXPECT_EQ(Messages(session), "");
  EXPECT_EQ(Take(session, "/quit").next, Next::kLeave);
  EXPECT_THAT(Take(session, "/help").text, HasSubstr("/clear"));
}

}  // namespace
}  // namespace penstock
