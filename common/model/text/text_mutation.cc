// Feeds seeded broken input to everything here that reads what comes from
// outside: chat templates, texts and vocabularies.
//   text_mutation --seed 1 --inputs 1000000 --min-hits 100
// A broken promise aborts. Exits 1 when an outcome came up fewer times than
// asked: then the run did not test it.

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/env/random.h"
#include "common/env/testing/edit_text.h"
#include "common/env/testing/mutation_report.h"
#include "common/model/text/jinja/parser.h"
#include "common/model/text/jinja/renderer.h"
#include "common/model/text/small_vocabulary.h"
#include "common/model/text/tokenizer.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

// Between them, these use every construct that the template engine knows.
constexpr absl::string_view kTemplates[] = {
    "{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m.content | trim + "
    "eos_token }}{% endfor %}{% if add %}{{ '<|assistant|>' }}{% endif %}",
    "{%- set ns = namespace(n=0, t='') -%}{% for m in messages[1:] if m.role "
    "!= 'system' %}{% set ns.n = ns.n + 1 %}{% set ns.t = ns.t ~ m.content %}"
    "{% else %}none{% endfor %}{{ ns.n }}{{ ns.t }}",
    "{% for m in messages[::-1] %}{% if loop.first or not loop.last %}"
    "{{ loop.index0 % 2 }}{{ loop.previtem is defined }}{% continue %}"
    "{% elif '</think>' in m.content %}{{ m.content.split('</think>')[-1]"
    ".lstrip('\\n') }}{% else %}{% break %}{% endif %}{% endfor %}",
    "{# note -#} {% set x %}a {{ 1 + 2 * 3 // 2 - 1.5 }}{% endset %}{{ x|upper "
    "}}{{ messages|length }}{{ {'a': [1, none, true, m]}|tojson(indent=2) }}",
    "{% for k, v in {'a': 1, 'b': 'x'}.items() %}{{ k ~ v if v is number and "
    "v is not none else k|default('z', true) }}{% endfor %}"
    "{{ range(3)|join(',') }}{{ (1, 2)[0] }}{{ [messages[0].content]|first }}",
    "{% if messages[0].role not in ['user', \"tool\"] %}"
    "{{ raise_exception('no ' ~ messages[0].role) }}{% endif %}"
    "{{ messages[-1].content|replace('a', 'b')|tojson }}"
    "{{ messages[0].content[2:5]|lower|capitalize }}",
    "{% macro f(a, b=a, c='') %}{{ a ~ b|d(c) }}{{ varargs|length }}{% if a > "
    "1 "
    "%}{{ f(a - 1, c=kwargs|length) }}{% endif %}{% endmacro %}{{ f(3, x=1) }}"
    "{% macro g() %}{{ caller(2) }}{% endmacro %}{% call(n) g() %}{{ n }}"
    "{% endcall %}",
    "{% filter upper|indent(2, true) %}{% raw %} {% endraw %}{% generation %}"
    "{{ messages|map(attribute='content')|select('ne', '')|join }}"
    "{% endgeneration %}{% endfilter %}{% with a = 1, b = [3, 1, 2]|sort %}"
    "{{ b|batch(2)|list|length + a ** 2 }}{% endwith %}",
    "{% for n in [{'c': [{'c': []}]}] recursive %}{{ loop.depth }}"
    "{{ loop(n.c) }}{% endfor %}{% set x | trim %}{{ '%5s' % messages[0].role "
    "}}"
    "{% endset %}{{ x * 2 }}{{ '{:>4}'.format(7) }}{{ "
    "messages[0].content.title()"
    ".rsplit(' ', 1)|last|reverse }}",
    "{% for role, group in messages|groupby('role') %}{{ group|length }}"
    "{{ loop.changed(role) }}{% endfor %}{{ messages|selectattr('role', '==', "
    "'user')|list|count }}{{ {'b': 1, 'a': 2}|dictsort|map('last')|sum|round }}"
    "{{ [2, 1]|unique|max }}{{ messages[0].content.find('a') + '4'|int }}",
};

constexpr absl::string_view kWords[] = {"{%",
                                        "%}",
                                        "{{",
                                        "}}",
                                        "{#",
                                        "#}",
                                        "-",
                                        "+",
                                        "~",
                                        "|",
                                        ".",
                                        ",",
                                        ":",
                                        "(",
                                        ")",
                                        "[",
                                        "]",
                                        "{",
                                        "}",
                                        "'",
                                        "\"",
                                        "\\",
                                        "\n",
                                        " ",
                                        "0",
                                        "7",
                                        "1e9",
                                        "99999999999",
                                        "==",
                                        "<",
                                        "in",
                                        "not",
                                        "is",
                                        "if",
                                        "elif",
                                        "else",
                                        "endif",
                                        "for",
                                        "endfor",
                                        "set",
                                        "endset",
                                        "and",
                                        "or",
                                        "loop",
                                        "messages",
                                        "content",
                                        "role",
                                        "namespace(x=1)",
                                        "range(999)",
                                        "none",
                                        "true",
                                        "trim",
                                        "tojson",
                                        "join",
                                        "defined",
                                        "\xC3\xA9",
                                        "\xF0\x9F\x98\x80",
                                        "\xFF",
                                        "\xE2\x82",
                                        "{% for a in range(99) %}",
                                        "{{ [",
                                        "((((((((",
                                        "not not not ",
                                        "x|trim|",
                                        "{% macro f(x) %}{{ f(x) }}",
                                        "{% endmacro %}",
                                        "{% call f() %}",
                                        "{% endcall %}",
                                        "{% raw %}",
                                        "{% endraw %}",
                                        "{{ f(1) }}",
                                        "{{ loop([1]) }}",
                                        "recursive",
                                        "|map('upper')",
                                        "|sort|unique|list",
                                        "|select('string')",
                                        "|indent(9)",
                                        "* 99999",
                                        "** 9",
                                        "'%99d' % ",
                                        "{% with a = 1 %}",
                                        "{% endwith %}",
                                        "{% filter replace('', ' ') %}",
                                        "{% endfilter %}",
                                        "caller()",
                                        "*varargs",
                                        "**kwargs",
                                        "{% include",
                                        "raise_exception(",
                                        "ns.x = ns",
                                        "// 0",
                                        "[::-1]",
                                        "<s>",
                                        "</s>",
                                        "<|x|>",
                                        "<tool>",
                                        "aaaaaaaaaaaaaaaa",
                                        "        ",
                                        "1234"};

// What messages are made of, beside spaces: no template holds it.
constexpr char32_t kMessageCharacter = 0x4E00;
constexpr absl::string_view kEscape = "\\u4e00";

class Driver {
 public:
  explicit Driver(uint64_t seed)
      : random_(seed),
        tokenizer_(*CreateTokenizer(
            SmallVocabulary({"a a", "aa aa", "\u0120 \u0120", "\u0120 a"}))) {}

  void Run(uint64_t inputs) {
    for (uint64_t i = 0; i < inputs; ++i) {
      switch (i % 3) {
        case 0:
          ExerciseTemplate();
          break;
        case 1:
          ExerciseText();
          break;
        default:
          ExerciseVocabulary();
          break;
      }
    }
  }

  // The exit status; see MutationReport.
  int Report(uint64_t min_hits) const {
    return report_.Print(
        {"template OK", "template INVALID_ARGUMENT", "template UNIMPLEMENTED",
         "template RESOURCE_EXHAUSTED", "render OK", "render INVALID_ARGUMENT",
         "render UNIMPLEMENTED", "render RESOURCE_EXHAUSTED", "text OK",
         "text INVALID_ARGUMENT", "vocabulary OK",
         "vocabulary INVALID_ARGUMENT", "vocabulary UNIMPLEMENTED"},
        min_hits);
  }

 private:
  template <typename Table>
  std::string Pick(const Table& table) {
    return std::string(table[random_.Below(std::size(table))]);
  }

  // A few edits: bytes changed, stretches taken out, copied or put in.
  std::string Mutated(std::string text) {
    for (uint64_t edits = random_.Below(4); edits > 0; --edits) {
      EditText(kWords, random_, text);
    }
    return text;
  }

  // Messages are of characters that no template holds, and spaces.
  jinja::Value Message() {
    std::string content;
    for (uint64_t i = random_.Below(8); i > 0; --i) {
      content += random_.Below(4) == 0 ? " " : EncodeUtf8(kMessageCharacter);
    }
    static constexpr absl::string_view kRoles[] = {"user", "system",
                                                   "assistant", "tool"};
    jinja::Dict message;
    message.items.emplace_back(jinja::Text("role", false),
                               jinja::TextValue(Pick(kRoles)));
    message.items.emplace_back(jinja::Text("content", false),
                               jinja::TextValue(content, true));
    return jinja::Value(std::move(message));
  }

  void ExerciseTemplate() {
    std::string source = Mutated(Pick(kTemplates));
    if (random_.Below(4) == 0) source += Mutated(Pick(kTemplates));
    const absl::StatusOr<jinja::Body> body = jinja::Parse(source);
    report_.Count("template", body.status());
    if (!body.ok()) return;
    jinja::List messages;
    messages.depth = 2;
    for (uint64_t i = random_.Below(4); i > 0; --i) {
      messages.items.push_back(Message());
    }
    const jinja::Scopes::Variables globals = {
        {"messages", jinja::Value(std::move(messages))},
        {"add", jinja::Value(random_.Below(2) == 0)},
        {"eos_token", jinja::TextValue("</s>")}};
    const jinja::Limits limits = {/*steps=*/100, /*bytes=*/1 << 18,
                                  /*output=*/1 << 14};
    const absl::StatusOr<jinja::Text> text =
        jinja::Render(*body, globals, jinja::World(), limits);
    report_.Count("render", text.status());
    if (text.ok()) CheckProvenance(*text);
  }

  // What the output says about its origin is true.
  void CheckProvenance(const jinja::Text& text) {
    CHECK(IsUtf8(text.bytes())) << "output that is not UTF-8";
    CHECK(text.size() <= (1 << 14)) << "output over its limit";
    size_t begin = 0;
    for (const jinja::Text::Run& run : text.runs()) {
      CHECK(run.end > begin && run.end <= text.size()) << "a bad run";
      for (size_t at = begin; at < run.end;
           at += Utf8Length(text.bytes(), at)) {
        const char32_t c = DecodeUtf8(text.bytes().substr(at));
        // Escapes of JSON spell the character out.
        const bool may_be_message =
            c == kMessageCharacter || c == ' ' ||
            (c < 0x80 && kEscape.find(static_cast<char>(c)) != kEscape.npos);
        CHECK(run.from_message ? may_be_message : c != kMessageCharacter)
            << "text of unclear origin";
      }
      begin = run.end;
    }
    CHECK(begin == text.size()) << "text without an origin";
  }

  void ExerciseText() {
    std::vector<std::string> parts;
    for (uint64_t i = random_.Below(4); i > 0; --i) {
      parts.push_back(Mutated(Pick(kWords) + Pick(kWords)));
    }
    std::vector<TextRun> runs;
    std::string joined;
    for (const std::string& part : parts) {
      runs.push_back({part, random_.Below(2) == 0 ? SpecialTokens::kParse
                                                  : SpecialTokens::kPlain});
      joined += part;
    }
    const auto ids = tokenizer_->EncodeRuns(runs);
    report_.Count("text", ids.status());
    CHECK(ids.ok() == IsUtf8(joined)) << ids.status().ToString();
    if (!ids.ok()) return;
    CHECK(*DecodeBytes(*tokenizer_, *ids, false) == joined)
        << "text that does not come back";
  }

  void ExerciseVocabulary() {
    Vocabulary vocabulary = SmallVocabulary({"a a", "aa aa", "a b"});
    const auto any_id = [&] {
      return static_cast<TokenId>(random_.Below(300)) - 2;
    };
    for (uint64_t edits = random_.Below(3); edits > 0; --edits) {
      std::string& token =
          vocabulary.tokens[random_.Below(vocabulary.tokens.size())];
      switch (random_.Below(8)) {
        case 0:
          token = Mutated(token);
          break;
        case 1:
          vocabulary.merges[random_.Below(3)].result = any_id();
          break;
        case 2:
          vocabulary.kinds.resize(random_.Below(300));
          break;
        case 3:
          vocabulary.bos = any_id();
          break;
        case 4:
          vocabulary.stop_tokens.push_back(any_id());
          break;
        case 5:
          vocabulary.pre_tokenizer = Mutated("smollm");
          break;
        case 6:
          vocabulary.model = Mutated("gpt2");
          break;
        default:
          for (TokenKind& kind : vocabulary.kinds) {
            if (random_.Below(8) == 0) {
              kind = static_cast<TokenKind>(random_.Below(6));
            }
          }
      }
    }
    const auto tokenizer = CreateTokenizer(vocabulary);
    report_.Count("vocabulary", tokenizer.status());
    if (!tokenizer.ok()) return;
    const auto ids =
        (*tokenizer)->Encode("aaab <s>\xC3\xA9 42", SpecialTokens::kParse);
    CHECK(ids.ok()) << ids.status().ToString();
    CHECK(DecodeBytes(**tokenizer, *ids, true).ok()) << "ids of no token";
  }

  SeededRandom random_;
  std::unique_ptr<Tokenizer> tokenizer_;
  MutationReport report_;
};

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  const auto options = penstock::ParseMutationOptions(argc, argv);
  if (!options) return 2;
  penstock::Driver driver(options->seed);
  driver.Run(options->inputs);
  return driver.Report(options->min_hits);
}
