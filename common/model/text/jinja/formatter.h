#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/budget.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/format_spec.h"
#include "common/model/text/jinja/text.h"

namespace penstock::jinja {

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

}  // namespace penstock::jinja
