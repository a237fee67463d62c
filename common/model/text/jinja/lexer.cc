#include "common/model/text/jinja/lexer.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/string_literal.h"
#include "common/model/text/jinja/text.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

// Longer spellings before their own beginnings.
constexpr absl::string_view kOperators[] = {
    "**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

// "\r\n" and "\r" become "\n"; one newline at the end goes.
std::string Normalised(absl::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text.push_back(source[i]);
      continue;
    }
    text.push_back('\n');
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

bool IsNameByte(char c) { return absl::ascii_isalnum(c) || c == '_'; }

class Lexer {
 public:
  explicit Lexer(absl::string_view source) : source_(source) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (at_ < source_.size()) RETURN_IF_ERROR(LexDataAndTag());
    Add(TokenType::kEnd, "");
    return std::move(tokens_);
  }

 private:
  absl::string_view rest() const { return source_.substr(at_); }
  bool At(absl::string_view text) const {
    return source_.substr(at_, text.size()) == text;
  }

  void Advance(size_t bytes) {
    for (size_t end = at_ + bytes; at_ < end; ++at_) {
      line_ += source_[at_] == '\n' ? 1 : 0;
    }
  }

  void SkipSpace() { Advance(Stripped(rest(), Side::kLeft).begin); }

  void Add(TokenType type, absl::string_view text) {
    tokens_.push_back({type, line_, std::string(text)});
  }

  // Where the next tag begins, or the end of the source.
  size_t FindTag() const {
    for (size_t i = at_; i + 1 < source_.size(); ++i) {
      if (source_[i] != '{') continue;
      const char next = source_[i + 1];
      if (next == '{' || next == '%' || next == '#') return i;
    }
    return source_.size();
  }

  // Text up to the next tag, and that tag.
  absl::Status LexDataAndTag() {
    const size_t tag = FindTag();
    const absl::string_view data = source_.substr(at_, tag - at_);
    if (tag == source_.size()) {
      Add(TokenType::kData, data);
      Advance(data.size());
      return absl::OkStatus();
    }
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const size_t kept = KeptData(data, kind, sign);
    if (kept > 0) Add(TokenType::kData, data.substr(0, kept));
    Advance(data.size() + 2 + (sign == '-' || sign == '+' ? 1 : 0));
    if (kind == '#') return LexComment();
    if (kind == '%') {
      if (const absl::optional<size_t> end = RawTagEnd("raw")) {
        return LexRaw(*end);
      }
    }
    return LexTag(kind == '{');
  }

  // How much of the text before a tag its whitespace control leaves.
  size_t KeptData(absl::string_view data, char kind, char sign) const {
    if (sign == '-') return Stripped(data, Side::kRight).end;
    if (sign == '+' || kind == '{') return data.size();
    const size_t newline = data.rfind('\n');
    if (newline == absl::string_view::npos && !line_starting_) {
      return data.size();
    }
    const size_t line = newline == absl::string_view::npos ? 0 : newline + 1;
    const absl::string_view indent = data.substr(line);
    const Range left = Stripped(indent, Side::kBoth);
    return left.begin == left.end ? line : data.size();
  }

  // After the `-` that may stand before the end of a tag, and the end: the
  // whitespace that goes with it.
  void EndTag(char sign, bool trims_newline) {
    if (sign == '-') {
      SkipSpace();
    } else if (sign != '+' && trims_newline && At("\n")) {
      Advance(1);
    }
    line_starting_ = source_[at_ - 1] == '\n';
  }

  // The end of a tag that holds only that word, if the rest of one is here; in
  // it, the sign that stands before its end.
  absl::optional<size_t> RawTagEnd(absl::string_view word) {
    size_t at = at_;
    const auto skip_space = [&] {
      at += Stripped(source_.substr(at), Side::kLeft).begin;
    };
    skip_space();
    if (source_.substr(at, word.size()) != word) return absl::nullopt;
    at += word.size();
    skip_space();
    raw_sign_ = '\0';
    const char next = at < source_.size() ? source_[at] : '\0';
    if (next == '-' || (next == '+' && word == "endraw")) {
      raw_sign_ = next;
      ++at;
    }
    if (source_.substr(at, 2) != "%}") return absl::nullopt;
    return at + 2;
  }

  // After the name of the tag `raw`: text without tags up to `endraw`.
  absl::Status LexRaw(size_t begin) {
    const int opened = line_;
    Advance(begin - at_);
    if (raw_sign_ == '-') SkipSpace();
    const size_t data_begin = at_;
    for (size_t tag = source_.find("{%", at_); tag != absl::string_view::npos;
         tag = source_.find("{%", tag + 1)) {
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      const bool signed_tag = sign == '-' || sign == '+';
      at_ = tag + 2 + (signed_tag ? 1 : 0);
      const absl::optional<size_t> end = RawTagEnd("endraw");
      at_ = data_begin;
      if (!end.has_value()) continue;
      const absl::string_view data =
          source_.substr(data_begin, tag - data_begin);
      line_starting_ = source_[data_begin - 1] == '\n';
      const size_t kept = KeptData(data, '%', signed_tag ? sign : '\0');
      if (kept > 0) Add(TokenType::kData, data.substr(0, kept));
      Advance(*end - at_);
      EndTag(raw_sign_, true);
      return absl::OkStatus();
    }
    return Failure(opened, "tag 'raw' has no 'endraw'");
  }

  absl::Status LexComment() {
    const size_t end = source_.find("#}", at_);
    if (end == absl::string_view::npos) {
      return Failure(line_, "a comment has no end '#}'");
    }
    char sign = end > at_ ? source_[end - 1] : '\0';
    Advance(end + 2 - at_);
    EndTag(sign, true);
    return absl::OkStatus();
  }

  // The `-` or `+` of a tag's end that begins here, '\0' for neither; nullopt
  // where the tag goes on.
  absl::optional<char> TagEnd(bool variable) const {
    const absl::string_view close = variable ? "}}" : "%}";
    if (At(close)) return '\0';
    const absl::string_view signs = variable ? "-" : "-+";
    if (!rest().empty() && signs.find(rest()[0]) != absl::string_view::npos &&
        source_.substr(at_ + 1, 2) == close) {
      return rest()[0];
    }
    return absl::nullopt;
  }

  absl::Status LexTag(bool variable) {
    const int begin = line_;
    Add(variable ? TokenType::kVariableBegin : TokenType::kBlockBegin, "");
    brackets_.clear();
    for (;;) {
      SkipSpace();
      if (at_ == source_.size()) {
        return Failure(
            begin, variable ? "'{{' has no end '}}'" : "'{%' has no end '%}'");
      }
      if (brackets_.empty()) {
        if (const absl::optional<char> sign = TagEnd(variable)) {
          Add(variable ? TokenType::kVariableEnd : TokenType::kBlockEnd, "");
          Advance(*sign == '\0' ? 2 : 3);
          EndTag(*sign, !variable);
          return absl::OkStatus();
        }
      }
      RETURN_IF_ERROR(LexToken());
    }
  }

  absl::Status LexToken() {
    const char c = rest()[0];
    if (absl::ascii_isdigit(c)) return LexNumber();
    if (IsNameByte(c)) return LexName();
    if (c == '\'' || c == '"') return LexString();
    for (const absl::string_view op : kOperators) {
      if (At(op)) return LexOperator(op);
    }
    const absl::string_view character =
        rest().substr(0, Utf8Length(source_, at_));
    if (character.size() > 1) {
      return Unknown(line_, absl::StrCat("a name with '", character, "'"));
    }
    return Failure(line_, absl::StrCat("unexpected '", character, "'"));
  }

  absl::Status LexOperator(absl::string_view op) {
    if (op == "(" || op == "[" || op == "{") {
      brackets_.push_back(op == "(" ? ')' : op == "[" ? ']' : '}');
    } else if (op == ")" || op == "]" || op == "}") {
      if (brackets_.empty() || brackets_.back() != op[0]) {
        return Failure(line_, absl::StrCat("unexpected '", op, "'"));
      }
      brackets_.pop_back();
    }
    Add(TokenType::kOperator, op);
    Advance(op.size());
    return absl::OkStatus();
  }

  absl::Status LexName() {
    size_t length = 0;
    while (length < rest().size() && IsNameByte(rest()[length])) ++length;
    const absl::string_view name = rest().substr(0, length);
    Add(TokenType::kName, name);
    Advance(length);
    return absl::OkStatus();
  }

  absl::Status LexString() {
    const char quote = rest()[0];
    size_t end = 1;
    while (end < rest().size() && rest()[end] != quote) {
      end += rest()[end] == '\\' ? 2 : 1;
    }
    if (end >= rest().size()) return Failure(line_, "a string has no end");
    ASSIGN_OR_RETURN(const std::string value,
                     DecodeStringLiteral(rest().substr(1, end - 1), line_));
    Add(TokenType::kString, value);
    Advance(end + 1);
    return absl::OkStatus();
  }

  // Digits from `from` on, with single underscores between them.
  size_t DigitsEnd(size_t from) const {
    size_t end = from;
    while (end < source_.size() && absl::ascii_isdigit(source_[end])) {
      ++end;
      if (end + 1 < source_.size() && source_[end] == '_' &&
          absl::ascii_isdigit(source_[end + 1])) {
        ++end;
      }
    }
    return end;
  }

  // Where the number that begins here ends; past `integer` if it has a
  // fraction or an exponent. After a dot (an index) it has neither.
  size_t NumberEnd(size_t integer) const {
    size_t end = integer;
    if (at_ > 0 && source_[at_ - 1] == '.') return end;
    if (source_.substr(end, 1) == "." && DigitsEnd(end + 1) > end + 1) {
      end = DigitsEnd(end + 1);
    }
    if (source_.substr(end, 1) == "e" || source_.substr(end, 1) == "E") {
      size_t digits = end + 1;
      if (source_.substr(digits, 1) == "+" ||
          source_.substr(digits, 1) == "-") {
        ++digits;
      }
      if (DigitsEnd(digits) > digits) end = DigitsEnd(digits);
    }
    return end;
  }

  absl::Status LexNumber() {
    const size_t integer = DigitsEnd(at_);
    const size_t end = NumberEnd(integer);
    const std::string digits =
        absl::StrReplaceAll(source_.substr(at_, end - at_), {{"_", ""}});
    if (end == integer) {
      RETURN_IF_ERROR(AddInteger(digits, source_.substr(end, 1)));
    } else {
      Token token = {TokenType::kFloat, line_, digits};
      if (!absl::SimpleAtod(digits, &token.real)) {
        return Failure(line_, absl::StrCat("'", digits, "' is no number"));
      }
      tokens_.push_back(std::move(token));
    }
    Advance(end - at_);
    return absl::OkStatus();
  }

  absl::Status AddInteger(const std::string& digits, absl::string_view next) {
    if (digits == "0" && !next.empty() && absl::ascii_isalpha(next[0])) {
      return Unknown(line_, absl::StrCat("number '0", next, "...'"));
    }
    if (digits[0] == '0' &&
        digits.find_first_not_of('0') != std::string::npos) {
      return Failure(line_, absl::StrCat("'", digits, "' is no number"));
    }
    Token token = {TokenType::kInteger, line_, digits};
    if (!absl::SimpleAtoi(digits, &token.integer)) {
      return Unknown(line_, absl::StrCat("integer ", digits));
    }
    tokens_.push_back(std::move(token));
    return absl::OkStatus();
  }

  absl::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  // Whether what was read last ends a line.
  bool line_starting_ = true;
  char raw_sign_ = '\0';        // what RawTagEnd found
  std::vector<char> brackets_;  // the closing ones that are due
  std::vector<Token> tokens_;
};

}  // namespace

absl::StatusOr<std::vector<Token>> Lex(absl::string_view source) {
  if (source.size() > kMaxSource) {
    return Exhausted(1, absl::StrCat("a template of ", source.size(),
                                     " bytes; at most ", kMaxSource));
  }
  RETURN_IF_ERROR(CheckUtf8("chat template", source));
  const std::string normalised = Normalised(source);
  return Lexer(normalised).Run();
}

}  // namespace penstock::jinja
