// `format % values`.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/formatter.h"
#include "common/model/text/jinja/formatting.h"
#include "common/model/text/jinja/printer.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

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

}  // namespace

absl::StatusOr<Text> FormatPercent(const Text& format, const Value& values,
                                   Budget& budget, int line) {
  return PercentFormatter(format, values, budget, line).Run();
}

}  // namespace penstock::jinja
