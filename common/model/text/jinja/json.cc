#include "common/model/text/jinja/json.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"

namespace penstock::jinja {
namespace {

std::string Escaped(absl::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    switch (c) {
      case '"':
        text += "\\\"";
        break;
      case '\\':
        text += "\\\\";
        break;
      case '\n':
        text += "\\n";
        break;
      case '\r':
        text += "\\r";
        break;
      case '\t':
        text += "\\t";
        break;
      case '\f':
        text += "\\f";
        break;
      case '\b':
        text += "\\b";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          absl::StrAppend(
              &text, "\\u",
              absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad4));
        } else {
          text.push_back(c);
        }
    }
  }
  return text;
}

class Writer {
 public:
  Writer(absl::optional<int> indent, Budget& budget, int line)
      : indent_(indent), budget_(budget), line_(line) {}

  absl::Status Write(const Value& value) {
    RETURN_IF_ERROR(budget_.TakeSteps(1, line_));
    if (const Text* text = value.text()) return WriteText(*text);
    if (const List* list = value.list()) return WriteList(*list);
    if (const Dict* dict = value.dict()) return WriteDict(*dict);
    if (value.is_none()) return Put("null");
    if (const bool* boolean = value.boolean()) {
      return Put(*boolean ? "true" : "false");
    }
    if (const int64_t* integer = value.integer()) {
      return Put(absl::StrCat(*integer));
    }
    if (const double* real = value.real()) {
      if (std::isnan(*real)) return Put("NaN");
      if (std::isinf(*real)) return Put(*real < 0 ? "-Infinity" : "Infinity");
      return Put(FormatReal(*real));
    }
    return Failure(
        line_, absl::StrCat("a ", value.type_name(), " has no form in JSON"));
  }

  Text Take() { return std::move(out_); }

 private:
  absl::Status Put(absl::string_view bytes) {
    RETURN_IF_ERROR(budget_.TakeBytes(bytes.size(), line_));
    out_.Append(bytes, false);
    return absl::OkStatus();
  }

  absl::Status WriteText(const Text& text) {
    RETURN_IF_ERROR(Put("\""));
    size_t begin = 0;
    for (const Text::Run& run : text.runs()) {
      // An escape takes up to six bytes.
      RETURN_IF_ERROR(budget_.TakeBytes((run.end - begin) * 6, line_));
      out_.Append(Escaped(text.bytes().substr(begin, run.end - begin)),
                  run.from_message);
      begin = run.end;
    }
    return Put("\"");
  }

  // What stands before the next of a list's or dictionary's items.
  absl::Status Separate(bool first) {
    if (!indent_.has_value()) return Put(first ? "" : ", ");
    RETURN_IF_ERROR(Put(first ? "" : ","));
    return NewLine();
  }

  absl::Status NewLine() {
    const size_t spaces =
        static_cast<size_t>(*indent_) * static_cast<size_t>(depth_);
    RETURN_IF_ERROR(budget_.TakeBytes(spaces, line_));
    return Put(absl::StrCat("\n", std::string(spaces, ' ')));
  }

  absl::Status Close(absl::string_view bracket) {
    if (indent_.has_value()) RETURN_IF_ERROR(NewLine());
    return Put(bracket);
  }

  absl::Status WriteList(const List& list) {
    if (list.items.empty()) return Put("[]");
    RETURN_IF_ERROR(Put("["));
    ++depth_;
    for (size_t i = 0; i < list.items.size(); ++i) {
      RETURN_IF_ERROR(Separate(i == 0));
      RETURN_IF_ERROR(Write(list.items[i]));
    }
    --depth_;
    return Close("]");
  }

  absl::Status WriteDict(const Dict& dict) {
    if (dict.items.empty()) return Put("{}");
    RETURN_IF_ERROR(Put("{"));
    ++depth_;
    for (size_t i = 0; i < dict.items.size(); ++i) {
      RETURN_IF_ERROR(Separate(i == 0));
      RETURN_IF_ERROR(WriteText(dict.items[i].first));
      RETURN_IF_ERROR(Put(": "));
      RETURN_IF_ERROR(Write(dict.items[i].second));
    }
    --depth_;
    return Close("}");
  }

  absl::optional<int> indent_;
  Budget& budget_;
  int line_;
  int depth_ = 0;  // at most kMaxDataDepth
  Text out_;
};

}  // namespace

absl::StatusOr<Text> ToJson(const Value& value, absl::optional<int> indent,
                            Budget& budget, int line) {
  Writer writer(indent, budget, line);
  RETURN_IF_ERROR(writer.Write(value));
  return writer.Take();
}

}  // namespace penstock::jinja
