// `format.format(...)`.
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/formatter.h"
#include "common/model/text/jinja/formatting.h"
#include "common/model/text/jinja/member.h"
#include "common/model/text/jinja/printer.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

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
    if (!integral && value.real() == nullptr) {
      return Fail(absl::StrCat("a ", value.type_name(), " takes no format"));
    }
    const bool known =
        spec.type == '\0' || kFloats.find(spec.type) != kFloats.npos ||
        (integral && kIntegers.find(spec.type) != kIntegers.npos);
    if (!known || (value.boolean() != nullptr && spec.type == '\0')) {
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

absl::StatusOr<Value> FormatBraces(const Text& format, const Invocation& call) {
  return BraceFormatter(format, call).Run();
}

}  // namespace penstock::jinja
