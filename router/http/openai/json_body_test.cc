#include "router/http/openai/json_body.h"

#include <string>

#include "common/peer/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string ErrorOf(const std::string& body, const JsonBodyLimits& limits) {
  const auto json = ParseJsonBody(body, limits);
  EXPECT_FALSE(json.ok());
  EXPECT_EQ(ErrorInfoOf(json.status()).reason, ErrorReason::kInvalidField);
  return std::string(json.status().message());
}

TEST(JsonBodyTest, KeepsValuesAndTheOrderOfKeys) {
  const std::string body =
      R"({"z":1,"a":[-2,3.5,true,null,"\u00e9"],"m":{},"k":18446744073709551615})";
  const auto json = ParseJsonBody(body);
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(DumpJson(*json),
            "{\"z\":1,\"a\":[-2,3.5,true,null,\"\xC3\xA9\"],\"m\":{},"
            "\"k\":18446744073709551615}");
}

TEST(JsonBodyTest, RefusesWhatIsNoObject) {
  for (const char* body :
       {"", " ", "[]", "1", "null", "\"x\"", "{", "{\"a\":}", "{\"a\":1,}",
        "{'a':1}", "{\"a\":1}x", "{\"a\":NaN}", "{\"a\":1e999}",
        "{\"a\":\"\xFF\"}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\n\"}"}) {
    EXPECT_THAT(ErrorOf(body, {}), HasSubstr("not a JSON object")) << body;
  }
}

TEST(JsonBodyTest, NamesAKeyThatComesTwice) {
  EXPECT_THAT(ErrorOf(R"({"a":{"b":1,"c":2,"b":3}})", {}),
              HasSubstr("\"b\" comes twice"));
  EXPECT_TRUE(ParseJsonBody(R"({"a":{"a":1},"b":{"a":1}})").ok());
  // However long it is.
  const std::string key(100000, 'k');
  EXPECT_LT(ErrorOf("{\"" + key + "\":1,\"" + key + "\":2}", {}).size(), 200u);
}

TEST(JsonBodyTest, BoundsDepth) {
  const JsonBodyLimits limits{.max_depth = 3};
  EXPECT_TRUE(ParseJsonBody(R"({"a":[[1]]})", limits).ok());
  EXPECT_THAT(ErrorOf(R"({"a":[[[1]]]})", limits), HasSubstr("deeper than 3"));
  EXPECT_THAT(ErrorOf("{\"a\":" + Repeat("[", 100000), {}),
              HasSubstr("deeper than 64"));
}

TEST(JsonBodyTest, BoundsTheNumberOfValues) {
  // The object, the list and its elements.
  const JsonBodyLimits limits{.max_values = 5};
  EXPECT_TRUE(ParseJsonBody(R"({"a":[1,2,3]})", limits).ok());
  EXPECT_THAT(ErrorOf(R"({"a":[1,2,3,4]})", limits), HasSubstr("more than 5"));
}

TEST(JsonBodyTest, ManyKeysTakeNoLongerThanTheyAre) {
  std::string body = "{\"a\":{";
  for (int i = 0; i < 200000; ++i) body += "\"k" + std::to_string(i) + "\":0,";
  body += "\"z\":0}}";
  const auto json = ParseJsonBody(body);
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ((*json)["a"].size(), 200001u);
}

TEST(JsonBodyTest, ShortForErrorCutsAtACharacter) {
  EXPECT_EQ(ShortForError("abc"), "abc");
  EXPECT_EQ(ShortForError(std::string(63, 'a') + "\xC3\xA9 and more"),
            std::string(63, 'a') + "...");
}

}  // namespace
}  // namespace penstock
