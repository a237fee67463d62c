#include "common/model/text/chat_template.h"

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/model/text/small_vocabulary.h"
#include "common/model/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Piece = ChatTemplate::Piece;

std::vector<Json> Cases() {
  std::ifstream in(PENSTOCK_TEST_DATA "/chat_templates/cases.jsonl");
  std::vector<Json> cases;
  for (std::string line; std::getline(in, line);) {
    cases.push_back(Json::parse(line));
  }
  return cases;
}

std::vector<ChatMessage> MessagesOf(const Json& row) {
  std::vector<ChatMessage> messages;
  for (const Json& message : row["messages"]) {
    messages.push_back({message["role"], message["content"]});
  }
  return messages;
}

// Parses and renders; the status of whichever fails.
absl::StatusOr<std::vector<Piece>> Rendered(
    absl::string_view source, const std::vector<ChatMessage>& messages = {},
    bool add_generation_prompt = false) {
  const auto parsed = ChatTemplate::Parse(source, {"<s>", "</s>"});
  if (!parsed.ok()) return parsed.status();
  return (*parsed)->Render(messages,
                           {.add_generation_prompt = add_generation_prompt});
}

TEST(ChatTemplate, RendersWhatJinja2Renders) {
  const std::vector<Json> cases = Cases();
  ASSERT_GT(cases.size(), 300u);
  for (const Json& row : cases) {
    SCOPED_TRACE(row["name"]);
    const auto pieces = Rendered(row["template"].get<std::string>(),
                                 MessagesOf(row), row["add_generation_prompt"]);
    if (row.contains("text")) {
      ASSERT_TRUE(pieces.ok()) << pieces.status();
      EXPECT_EQ(JoinPieces(*pieces), row["text"]);
      continue;
    }
    EXPECT_EQ(pieces.status().code(), absl::StatusCode::kInvalidArgument)
        << pieces.status();
    if (row["error"] == "raised") {
      EXPECT_THAT(std::string(pieces.status().message()),
                  HasSubstr(row["python_says"].get<std::string>()));
    }
  }
}

// Every character that is not a space moved to the private use area, where no
// template writes anything.
std::string Private(const std::string& text) {
  std::string moved;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    moved += byte <= ' ' ? std::string(1, c) : EncodeUtf8(0xE000 + byte);
  }
  return moved;
}

TEST(ChatTemplate, PiecesSayWhatCameFromMessages) {
  size_t from_messages = 0;
  for (const Json& row : Cases()) {
    const std::string name = row["name"];
    // Roles that are text of the message, and escapes that JSON puts in it.
    if (absl::StrContains(name, "odd_role") ||
        absl::StrContains(name, "joined")) {
      continue;
    }
    std::vector<ChatMessage> messages = MessagesOf(row);
    for (ChatMessage& message : messages) {
      message.content = Private(message.content);
    }
    const auto pieces = Rendered(row["template"].get<std::string>(), messages,
                                 row["add_generation_prompt"]);
    if (!pieces.ok()) continue;
    SCOPED_TRACE(name);
    bool before = false;
    for (size_t i = 0; i < pieces->size(); ++i) {
      const Piece& piece = (*pieces)[i];
      EXPECT_FALSE(piece.text.empty());
      EXPECT_TRUE(i == 0 || piece.from_message != before);
      before = piece.from_message;
      absl::string_view text = piece.text;
      while (!text.empty()) {
        const char32_t c = DecodeUtf8(text);
        text.remove_prefix(Utf8Length(text, 0));
        if (c <= ' ') continue;
        ASSERT_EQ(c >= 0xE000 && c < 0xE100, piece.from_message);
        from_messages += piece.from_message ? 1 : 0;
      }
    }
  }
  EXPECT_GT(from_messages, 1000u);
}

TEST(ChatTemplate, RolesOutsideTheKnownOnesAreTextOfTheMessage) {
  const char kSource[] = "{% for m in messages %}<|{{ m.role }}|>{% endfor %}";
  auto pieces = Rendered(kSource, {{"user", ""}});
  ASSERT_TRUE(pieces.ok());
  ASSERT_EQ(pieces->size(), 1u);
  EXPECT_EQ((*pieces)[0].text, "<|user|>");
  pieces = Rendered(kSource, {{"x", ""}});
  ASSERT_TRUE(pieces.ok());
  ASSERT_EQ(pieces->size(), 3u);
  EXPECT_TRUE((*pieces)[1].from_message);
  // So a client cannot name a special token of its choice: <|x|> is one here.
  const auto tokenizer = *CreateTokenizer(SmallVocabulary());
  EXPECT_EQ(*EncodePieces(*pieces, *tokenizer),
            *tokenizer->Encode("<|x|>", SpecialTokens::kPlain));
}

TEST(ChatTemplate, SpecialTokensAreOnlyWhatTheTemplateWrote) {
  const auto pieces =
      Rendered("{% for m in messages %}<s>{{ m.content }}</s>{% endfor %}",
               {{"user", "<s>"}, {"user", "</"}, {"user", "s>"}});
  ASSERT_TRUE(pieces.ok());
  const auto tokenizer = *CreateTokenizer(SmallVocabulary());
  EXPECT_THAT(*EncodePieces(*pieces, *tokenizer),
              ElementsAre(256, '<', 's', '>', 257, 256, '<', '/', 257, 256, 's',
                          '>', 257));
}

TEST(ChatTemplate, WhatIsNotKnownIsNamedWithItsLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"a\n\n{% include 'x' %}", "line 3: tag 'include'"},
      {"{% block x %}{% endblock %}", "tag 'block'"},
      {"{{ 1\n | urlize }}", "line 2: filter 'urlize'"},
      {"{{ 1|map('urlize') }}", "filter 'urlize'"},
      {"{{ 1 is within 1 }}", "test 'within'"},
      {"{{ 1 is sameas 1 }}", "sameas of a int"},
      {"{{ [1]|map('string') }}", "printing a generator"},
      {"{{ range(3) }}", "printing a range"},
      {"{{ namespace() }}", "printing a namespace"},
      {"{{ range }}", "printing a function"},
      {"{% macro f() %}{% endmacro %}{{ f }}", "printing a macro"},
      {"{{ strftime_now('%d') }}", "function 'strftime_now'"},
      {"{{ joiner(',') }}", "function 'joiner'"},
      {"{{ 'a'.encode() }}", "method 'encode' of a str"},
      {"{{ {}.items }}", "method 'items' without a call"},
      {"{{ {}['items'] }}", "method 'items' without a call"},
      {"{{ {}.keys() == {}.keys() }}", "comparing a dict_keys"},
      {"{{ [1, 2][0, 1] }}", "an index of several"},
      {"{{ 0x10 }}", "number '0x"},
      {"{{ 99999999999999999999 }}", "integer 99999999999999999999"},
      {"{{ 9223372036854775807 + 1 }}", "an integer over 64 bits"},
      {"{{ 2 ** 99 }}", "an integer over 64 bits"},
      {"{{ '9223372036854775808'|int }}", "an integer over 64 bits"},
      {"{{ (-1) ** 0.5 }}", "a complex number"},
      {"{{ '%a' % 1 }}", "conversion '%a'"},
      {"{{ '{!a}'.format(1) }}", "conversion in a format"},
      {"{{ '\\N{DASH}' }}", "escape '\\N'"},
      {"{{ '\\\u00e9' }}", "a backslash before"},
      {"{{ \u00e9 }}", "a name with '\u00e9'"},
      {"{{ [1]|tojson(indent=9999) }}", "an indent of 9999"},
      {"{{ 1.5|round(-1) }}", "a precision of -1"},
      {"{{ {1: 2}|tojson }}", "a int as the key of a dict"},
      {"{{ namespace([1]).a }}", "namespace of a list"},
      {"{% set n = namespace() %}{% set n.n = n %}",
       "a namespace inside a namespace"},
      {"{{ namespace(a=range) }}", "a function inside a namespace"},
      {"{% set n = [namespace()] %}", "a namespace inside another value"},
      {"{% macro f() %}{% endmacro %}{% set n = [f] %}",
       "a macro inside another value"},
      {"{{ range == namespace }}", "comparing a function"},
  };
  for (const auto& [source, message] : cases) {
    const auto pieces = Rendered(source);
    EXPECT_EQ(pieces.status().code(), absl::StatusCode::kUnimplemented)
        << source << " gives " << pieces.status();
    EXPECT_THAT(std::string(pieces.status().message()), HasSubstr(message));
  }
}

TEST(ChatTemplate, ErrorsNameTheLine) {
  const auto pieces = Rendered("a\n{% if 1 %}\n\n  {{ u.x }}\n{% endif %}");
  EXPECT_THAT(std::string(pieces.status().message()),
              HasSubstr("chat template, line 4: 'u' is undefined"));
}

std::string Repeated(absl::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all.append(text.data(), text.size());
  return all;
}

TEST(ChatTemplate, WorkTextAndDepthAreBounded) {
  const auto nested = [](const char* open, const char* inner, const char* close,
                         int count) {
    return Repeated(open, count) + inner + Repeated(close, count);
  };
  const std::string cases[] = {
      // Steps.
      "{% for a in range(5000) %}{% for b in range(5000) %}{% endfor %}"
      "{% endfor %}",
      "{% for a in range(50000) %}{% for b in range(50000) %}{% endfor %}"
      "{% endfor %}",
      // Text on the way, and written.
      "{% set n = namespace(x='aaaaaaaa') %}{% for i in range(60) %}"
      "{% set n.x = n.x + n.x %}{% endfor %}",
      "{% set n = namespace(x=[1, 2, 3]) %}{% for i in range(60) %}"
      "{% set n.x = n.x + n.x %}{% endfor %}",
      "{% set n = namespace(x='aa') %}{% for i in range(60) %}"
      "{% set n.x = n.x|replace('a', 'aaaa') %}{% endfor %}",
      "{% set n = namespace(x='aaaa') %}{% for i in range(18) %}"
      "{% set n.x = n.x ~ n.x %}{% endfor %}"
      "{% for i in range(90) %}{{ n.x }}{% endfor %}",
      // Calls: of macros, of each other, with blocks, of loops, of filters.
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f(x) %}{% if x %}{{ g(x) ~ 1 }}{% endif %}{% endmacro %}"
      "{% macro g(x) %}{% for y in [1] %}{{ f(x) }}{% endfor %}{% endmacro %}"
      "{{ f(1) }}",
      "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{% endmacro %}"
      "{{ f() }}",
      "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}"
      "{% endmacro %}{{ f(40) }}",
      "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
      "{% macro f(x=f()) %}{% endmacro %}{{ f() }}",
      // Text that filters and operators make.
      "{{ 'abcdefgh' * 999999999999 }}",
      "{{ [1, 2] * 999999999 }}",
      "{{ 'a'|center(999999999) }}",
      "{{ 'a'.zfill(999999999999) }}",
      "{{ '%999999d' % 1 }}",
      "{{ '{:999999}'.format(1) }}",
      "{{ [1]|batch(99999999, 1)|list|length }}",
      "{{ [1]|slice(99999999)|list|length }}",
      "{% filter replace('', 'aaaaaaaaaaaaaaaa') %}{{ 'a' * 99999999 }}"
      "{% endfilter %}",
      // Depth: of brackets, trees, tags and values.
      "{{ " + nested("(", "1", ")", 5000) + " }}",
      "{{ " + nested("[", "1", "]", 5000) + " }}",
      "{{ " + nested("a[", "1", "]", 5000) + " }}",
      "{{ 1" + Repeated(" + 1", 5000) + " }}",
      "{{ 1" + Repeated(" if 1 else 1", 5000) + " }}",
      "{{ a" + Repeated(".a", 5000) + " }}",
      "{{ a" + Repeated("|trim", 5000) + " }}",
      "{{ " + Repeated("not ", 5000) + "1 }}",
      "{{ " + Repeated("- ", 5000) + "1 }}",
      nested("{% if 1 %}", "", "{% endif %}", 5000),
      nested("{% for a in b %}", "", "{% endfor %}", 5000),
      nested("{% set x %}", "", "{% endset %}", 5000),
      nested("{% macro f() %}", "", "{% endmacro %}", 5000),
      nested("{% call f() %}", "", "{% endcall %}", 5000),
      nested("{% filter trim %}", "", "{% endfilter %}", 5000),
      nested("{% with %}", "", "{% endwith %}", 5000),
      nested("{% for ", "", "", 1) + nested("(", "a", ")", 5000) +
          " in b %}{% endfor %}",
      "{{ 1" + Repeated(" ** 1", 5000) + " }}",
      "{% set n = namespace(x=[]) %}{% for i in range(5000) %}"
      "{% set n.x = [n.x] %}{% endfor %}",
      "{% set n = namespace(x=[]) %}{% for i in range(5000) %}"
      "{% set n.x = {'a': n.x} %}{% endfor %}",
      // Source.
      std::string((1 << 20) + 1, 'a'),
  };
  for (const std::string& source : cases) {
    const auto pieces = Rendered(source);
    EXPECT_EQ(pieces.status().code(), absl::StatusCode::kResourceExhausted)
        << source.substr(0, 100) << " gives " << pieces.status();
  }
}

TEST(ChatTemplate, LongButFlatTemplatesAreFine) {
  EXPECT_TRUE(Rendered("{{ 1" + Repeated(" ~ 1", 5000) + " }}").ok());
  EXPECT_TRUE(Rendered("{{ [1" + Repeated(", 1", 5000) + "]|length }}").ok());
  EXPECT_TRUE(
      Rendered("{% if 0 %}" + Repeated("{% elif 0 %}", 5000) + "{% endif %}")
          .ok());
}

TEST(ChatTemplate, MessagesAreCheckedByField) {
  const auto content = Rendered("x", {{"user", "a"}, {"user", "b\xFF"}});
  EXPECT_EQ(content.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(content.status().message()),
              HasSubstr("messages[1].content is not UTF-8"));
  const auto role = Rendered("x", {{"\xFF", "a"}});
  EXPECT_THAT(std::string(role.status().message()),
              HasSubstr("messages[0].role is not UTF-8"));
  const auto source = Rendered("\xFF");
  EXPECT_THAT(std::string(source.status().message()),
              HasSubstr("chat template is not UTF-8"));
}

TEST(ChatTemplate, RenderingLeavesTheTemplateAsItWas) {
  const auto parsed = ChatTemplate::Parse(
      "{% set n = namespace(c=0) %}{% for m in messages %}"
      "{% set n.c = n.c + 1 %}{% endfor %}{{ n.c }}{{ x }}{% set x = 1 %}");
  ASSERT_TRUE(parsed.ok());
  const std::vector<ChatMessage> messages = {{"user", "a"}, {"user", "b"}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(JoinPieces(*(*parsed)->Render(messages, ChatOptions())), "2");
  }
}

TEST(ChatTemplate, WithoutSpecialTokensTheirNamesAreUndefined) {
  const auto parsed = ChatTemplate::Parse(
      "{{ bos_token is defined }}{{ eos_token is defined }}");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(JoinPieces(*(*parsed)->Render({}, ChatOptions())), "FalseFalse");
}

}  // namespace
}  // namespace penstock
