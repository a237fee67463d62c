#include "common/model/text/jinja/formatting.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/format_spec.h"
#include "common/model/text/jinja/member.h"
#include "common/model/text/jinja/printer.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

// What both ways of formatting have: a place in the format, and what is made.
class Formatter {
 protected:
  Formatter(const Text& format, Budget& budget, int line)
      : format_(format),
        source_(format.bytes()),
        budget_(budget),
        line_(line) {}

  bool at_end() const { return at_ == source_.size(); }
  char current() const { return at_end() ? '\0' : source_[at_]; }
  bool Skip(char c) {
    if (current() != c) return false;
    ++at_;
    return true;
  }

  absl::Status Fail(absl::string_view what) const {
    return Failure(line_, absl::StrCat("format: ", what));
  }

  absl::StatusOr<int64_t> Number() {
    int64_t number = 0;
    while (absl::ascii_isdigit(current())) {
      number = number * 10 + (source_[at_++] - '0');
      if (number > kMaxFormatWidth) {
        return Exhausted(line_,
                         absl::StrCat("a format wider than ", kMaxFormatWidth));
      }
    }
    return number;
  }

  // The format's own text from `begin` on, up to here.
  absl::Status Copy(size_t begin) {
    RETURN_IF_ERROR(budget_.TakeBytes(at_ - begin, line_));
    out_.Append(format_, begin, at_);
    return absl::OkStatus();
  }

  absl::Status WriteFloat(const FormatSpec& spec, double value) {
    ASSIGN_OR_RETURN(const Text text, FormatFloat(spec, value, budget_, line_));
    out_.Append(text);
    return absl::OkStatus();
  }
  absl::Status WriteInteger(const FormatSpec& spec, int64_t value) {
    ASSIGN_OR_RETURN(const Text text,
                     FormatInteger(spec, value, budget_, line_));
    out_.Append(text);
    return absl::OkStatus();
  }
  absl::Status WriteText(const FormatSpec& spec, const Text& value) {
    ASSIGN_OR_RETURN(const Text text, FormatText(spec, value, budget_, line_));
    out_.Append(text);
    return absl::OkStatus();
  }

  const Text& format_;
  const absl::string_view source_;
  Budget& budget_;
  const int line_;
  size_t at_ = 0;
  Text out_;
};

class PercentFormatter : private Formatter {
 public:
  PercentFormatter(const Text& format, const Value& values, Budget& budget,
                   int line)
      : Formatter(format, budget, line), values_(values) {
    const List* list = values.list();
    if (list != nullptr && list->is_tuple()) row_ = list;
    // Whatever has items by key or place need not be used up.
    mapping_ = values.dict() != nullptr ||
               (list != nullptr && row_ == nullptr && list->has_places());
  }

  absl::StatusOr<Text> Run() {
    while (!at_end()) {
      const size_t begin = at_;
      at_ = std::min(source_.find('%', at_), source_.size());
      RETURN_IF_ERROR(Copy(begin));
      if (at_end()) break;
      ++at_;
      if (Skip('%')) {
        RETURN_IF_ERROR(Copy(at_ - 1));
        continue;
      }
      RETURN_IF_ERROR(Convert());
    }
    const size_t count = row_ == nullptr ? 1 : row_->items.size();
    if (!mapping_ && used_ < count) {
      return Fail("not all arguments are converted");
    }
    return std::move(out_);
  }

 private:
  absl::StatusOr<Value> Next() {
    const size_t count = row_ == nullptr ? 1 : row_->items.size();
    if (used_ >= count) return Fail("not enough arguments");
    ++used_;
    return row_ == nullptr ? values_ : row_->items[used_ - 1];
  }

  absl::StatusOr<Value> Named() {
    const size_t end = source_.find(')', at_);
    if (end == absl::string_view::npos) return Fail("a key has no end");
    const absl::string_view key = source_.substr(at_, end - at_);
    at_ = end + 1;
    if (values_.dict() == nullptr) return Fail("needs a dict");
    const Value* value = values_.dict()->Find(key);
    if (value == nullptr) return Fail(absl::StrCat("no value '", key, "'"));
    return *value;
  }

  // A width or precision, which `*` takes from the values.
  absl::StatusOr<int64_t> Measure() {
    if (!Skip('*')) return Number();
    ASSIGN_OR_RETURN(const Value value, Next());
    if (value.AsInteger() == nullptr) return Fail("'*' wants an int");
    const int64_t measure = *value.AsInteger();
    if (measure > kMaxFormatWidth || measure < -kMaxFormatWidth) {
      return Exhausted(line_,
                       absl::StrCat("a format wider than ", kMaxFormatWidth));
    }
    return measure;
  }

  absl::Status Convert() {
    absl::optional<Value> named;
    if (Skip('(')) {
      ASSIGN_OR_RETURN(named, Named());
    }
    FormatSpec spec;
    spec.align = '>';
    bool left = false;
    bool zero = false;
    for (;; ++at_) {
      const char flag = current();
      if (flag == '-') {
        left = true;
      } else if (flag == '0') {
        zero = true;
      } else if (flag == '#') {
        spec.alternate = true;
      } else if (flag == '+' || (flag == ' ' && spec.sign != '+')) {
        spec.sign = flag;
      } else if (flag != ' ') {
        break;
      }
    }
    ASSIGN_OR_RETURN(spec.width, Measure());
    if (spec.width < 0) {
      left = true;
      spec.width = -spec.width;
    }
    if (Skip('.')) {
      ASSIGN_OR_RETURN(spec.precision, Measure());
      spec.precision = std::max<int64_t>(spec.precision, 0);
    }
    while (current() == 'h' || current() == 'l' || current() == 'L') ++at_;
    if (at_end()) return Fail("ends within a conversion");
    const char type = source_[at_++];
    if (type == '%') {
      out_.Append("%", false);
      return absl::OkStatus();
    }
    Value value;
    if (named.has_value()) {
      value = *std::move(named);
    } else {
      ASSIGN_OR_RETURN(value, Next());
    }
    if (left) spec.align = '<';
    return Write(type, left ? false : zero, value, spec);
  }

  absl::Status Write(char type, bool zero, const Value& value,
                     FormatSpec& spec) {
    const int64_t* integer = value.AsInteger();
    switch (type) {
      case 's': {
        ASSIGN_OR_RETURN(const Text text, Printed(value, budget_, line_));
        return WriteText(spec, text);
      }
      case 'r': {
        ASSIGN_OR_RETURN(const Text text, Represented(value, budget_, line_));
        return WriteText(spec, text);
      }
      case 'c':
        return WriteCharacter(value, spec);
      default:
        break;
    }
    if (zero) {
      spec.fill.assign(1, '0');
      spec.align = '=';
    }
    spec.type = type == 'i' || type == 'u' ? 'd' : type;
    switch (spec.type) {
      case 'd':
      case 'x':
      case 'X':
      case 'o':
        if (integer != nullptr) return WriteInteger(spec, *integer);
        if (spec.type == 'd' && value.real() != nullptr) {
          return WriteTruncated(spec, *value.real());
        }
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (integer != nullptr) {
          return WriteFloat(spec, static_cast<double>(*integer));
        }
        if (value.real() != nullptr) return WriteFloat(spec, *value.real());
        break;
      default:
        return Unknown(
            line_, absl::StrCat("conversion '%", std::string(1, type), "'"));
    }
    return Fail(absl::StrCat("'%", std::string(1, type), "' wants a number, ",
                             "not a ", value.type_name()));
  }

  absl::Status WriteTruncated(const FormatSpec& spec, double value) {
    if (!std::isfinite(value)) return Fail("'%d' of no finite number");
    if (std::abs(value) >= 9.2e18) {
      return Unknown(line_, "an integer over 64 bits");
    }
    return WriteInteger(spec, static_cast<int64_t>(value));
  }

  absl::Status WriteCharacter(const Value& value, const FormatSpec& spec) {
    if (const int64_t* code = value.AsInteger()) {
      const bool surrogate = *code >= 0xD800 && *code < 0xE000;
      if (*code < 0 || *code > 0x10FFFF || surrogate) {
        return Fail("'%c' of no character");
      }
      return WriteText(spec,
                       Text(EncodeUtf8(static_cast<char32_t>(*code)), false));
    }
    const Text* text = value.text();
    if (text == nullptr || CountUtf8(text->bytes()) != 1) {
      return Fail("'%c' wants one character");
    }
    return WriteText(spec, *text);
  }

  const Value& values_;
  const List* row_ = nullptr;  // of a tuple
  bool mapping_ = false;
  size_t used_ = 0;
};

class BraceFormatter : private Formatter {
 public:
  BraceFormatter(const Text& format, const Invocation& call)
      : Formatter(format, call.budget, call.line), call_(call) {}

  absl::StatusOr<Value> Run() {
    while (!at_end()) {
      const size_t begin = at_;
      while (!at_end() && current() != '{' && current() != '}') ++at_;
      RETURN_IF_ERROR(Copy(begin));
      if (at_end()) break;
      const char brace = source_[at_++];
      if (Skip(brace)) {
        RETURN_IF_ERROR(Copy(at_ - 1));
        continue;
      }
      if (brace == '}') return Fail("a '}' without a '{'");
      RETURN_IF_ERROR(Replace());
    }
    return Value(std::move(out_));
  }

 private:
  // After a '{'.
  absl::Status Replace() {
    ASSIGN_OR_RETURN(Value value, Field());
    char conversion = '\0';
    if (Skip('!')) {
      if (at_end()) return Fail("a '{' has no '}'");
      conversion = source_[at_++];
    }
    if (conversion != '\0' && conversion != 's' && conversion != 'r') {
      return Unknown(line_, "that conversion in a format");
    }
    FormatSpec spec;
    bool plain = true;
    if (Skip(':')) {
      plain = current() == '}';
      RETURN_IF_ERROR(ParseSpec(spec));
    }
    if (!Skip('}')) return Fail("a '{' has no '}'");
    if (conversion == 'r') {
      ASSIGN_OR_RETURN(const Text text, Represented(value, budget_, line_));
      return Write(Value(text), spec, plain);
    }
    if (conversion == 's') {
      ASSIGN_OR_RETURN(const Text text, Printed(value, budget_, line_));
      return Write(Value(text), spec, plain);
    }
    return Write(value, spec, plain);
  }

  // A value by place or name, and members of it.
  absl::StatusOr<Value> Field() {
    const size_t begin = at_;
    while (!at_end() && absl::string_view("}!:.[{").find(current()) ==
                            absl::string_view::npos) {
      ++at_;
    }
    const absl::string_view name = source_.substr(begin, at_ - begin);
    ASSIGN_OR_RETURN(Value value, Argument(name));
    for (;;) {
      if (Skip('.')) {
        const size_t from = at_;
        while (!at_end() && absl::string_view("}!:.[{").find(current()) ==
                                absl::string_view::npos) {
          ++at_;
        }
        ASSIGN_OR_RETURN(
            value, AttributeOf(value, source_.substr(from, at_ - from), budget_,
                               line_));
      } else if (Skip('[')) {
        const size_t end = source_.find(']', at_);
        if (end == absl::string_view::npos) return Fail("a '[' has no ']'");
        const absl::string_view key = source_.substr(at_, end - at_);
        at_ = end + 1;
        ASSIGN_OR_RETURN(
            value, MemberAt(value, TextValue(key), nullptr, budget_, line_));
      } else {
        return value;
      }
    }
  }

  absl::StatusOr<Value> Argument(absl::string_view name) {
    const auto& positional = call_.arguments.positional;
    const bool numeric =
        name.find_first_not_of("0123456789") == absl::string_view::npos;
    if (!numeric) {
      for (const auto& [key, value] : call_.arguments.named) {
        if (key == name) return value;
      }
      return Fail(absl::StrCat("no value '", name, "'"));
    }
    if (name.size() > 6) return Fail("no value of that place");
    const bool automatic = name.empty();
    if ((automatic && numbered_) || (!automatic && next_ > 0)) {
      return Fail("numbered and unnumbered values together");
    }
    numbered_ = numbered_ || !automatic;
    size_t place = 0;
    for (const char digit : name) {
      place = place * 10 + static_cast<size_t>(digit - '0');
    }
    if (automatic) place = next_++;
    if (place >= positional.size()) return Fail("no value of that place");
    return positional[place];
  }

  absl::Status ParseSpec(FormatSpec& spec) {
    constexpr absl::string_view kAligns = "<>^=";
    const auto aligns = [&](size_t at) {
      return at < source_.size() &&
             kAligns.find(source_[at]) != absl::string_view::npos;
    };
    const size_t fill = at_end() ? 0 : Utf8Length(source_, at_);
    if (fill > 0 && current() != '{' && aligns(at_ + fill)) {
      spec.fill = std::string(source_.substr(at_, fill));
      at_ += fill;
      spec.align = source_[at_++];
    } else if (aligns(at_)) {
      spec.align = source_[at_++];
    }
    if (current() == '+' || current() == '-' || current() == ' ') {
      spec.sign = current() == '-' ? '\0' : current();
      ++at_;
    }
    spec.alternate = Skip('#');
    if (Skip('0') && spec.align == '\0') {
      spec.fill.assign(1, '0');
      spec.align = '=';
    }
    ASSIGN_OR_RETURN(spec.width, Number());
    if (current() == ',' || current() == '_') spec.grouping = source_[at_++];
    if (Skip('.')) {
      if (!absl::ascii_isdigit(current()))
        return Fail("a precision is missing");
      ASSIGN_OR_RETURN(spec.precision, Number());
    }
    if (!at_end() && current() != '}') spec.type = source_[at_++];
    if (current() != '}') return Unknown(line_, "that format");
    return absl::OkStatus();
  }

  absl::Status Write(const Value& value, const FormatSpec& spec, bool plain) {
    if (value.text() != nullptr) return WriteString(*value.text(), spec);
    if (plain) {
      ASSIGN_OR_RETURN(const Text text, Printed(value, budget_, line_));
      out_.Append(text);
      return absl::OkStatus();
    }
    constexpr absl::string_view kIntegers = "bdoxX";
    constexpr absl::string_view kFloats = "eEfFgG%";
    const bool integral = value.AsInteger() != nullptr;
    const bool known =
        spec.type == '\0' || kFloats.find(spec.type) != kFloats.npos ||
        (integral && kIntegers.find(spec.type) != kIntegers.npos);
    if (!known || (!integral && value.real() == nullptr) ||
        (value.boolean() != nullptr && spec.type == '\0')) {
      return Unknown(line_,
                     absl::StrCat("that format of a ", value.type_name()));
    }
    if (!integral) return WriteFloat(spec, *value.real());
    if (kFloats.find(spec.type) != kFloats.npos && spec.type != '\0') {
      return WriteFloat(spec, static_cast<double>(*value.AsInteger()));
    }
    if (spec.precision >= 0) return Fail("a precision of an int");
    if (spec.grouping != '\0' && spec.align == '=' && spec.fill == "0") {
      return Unknown(line_, "zeros and groups in one format");
    }
    return WriteInteger(spec, *value.AsInteger());
  }

  absl::Status WriteString(const Text& text, const FormatSpec& spec) {
    if ((spec.type != '\0' && spec.type != 's') || spec.sign != '\0' ||
        spec.alternate || spec.grouping != '\0') {
      return Fail("a str in a format for numbers");
    }
    FormatSpec padded = spec;
    if (spec.align == '=' && spec.fill == "0") padded.align = '<';
    if (padded.align == '=') return Fail("a str in a format for numbers");
    return WriteText(padded, text);
  }

  const Invocation& call_;
  size_t next_ = 0;        // of values without a number
  bool numbered_ = false;  // values are given by number
};

}  // namespace

absl::StatusOr<Text> FormatPercent(const Text& format, const Value& values,
                                   Budget& budget, int line) {
  return PercentFormatter(format, values, budget, line).Run();
}

absl::StatusOr<Value> FormatBraces(const Text& format, const Invocation& call) {
  return BraceFormatter(format, call).Run();
}

}  // namespace penstock::jinja
