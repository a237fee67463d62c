#include "common/model/text/jinja/json.h"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

// A character as one escape, or two of UTF-16.
void AppendEscape(char32_t c, std::string& text) {
  auto code = static_cast<uint32_t>(c);
  if (code > 0xFFFF) {
    code -= 0x10000;
    absl::StrAppend(&text, "\\u", absl::Hex(0xD800 + (code >> 10)), "\\u",
                    absl::Hex(0xDC00 + (code & 0x3FF)));
    return;
  }
  absl::StrAppend(&text, "\\u", absl::Hex(code, absl::kZeroPad4));
}

std::string Escaped(absl::string_view bytes, bool ascii) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (ascii && (!absl::ascii_isascii(c) || c == 0x7F)) {
      AppendEscape(DecodeUtf8(bytes.substr(i)), text);
      i += Utf8Length(bytes, i) - 1;
      continue;
    }
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
  Writer(const JsonStyle& style, Budget& budget, int line)
      : style_(style), budget_(budget), line_(line) {}

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
      out_.Append(
          Escaped(text.bytes().substr(begin, run.end - begin), style_.ascii),
          run.from_message);
      begin = run.end;
    }
    return Put("\"");
  }

  // What stands before the next of a list's or dictionary's items.
  absl::Status Separate(bool first) {
    RETURN_IF_ERROR(Put(first ? "" : style_.item_separator));
    return style_.indent.has_value() ? NewLine() : absl::OkStatus();
  }

  absl::Status NewLine() {
    RETURN_IF_ERROR(Put("\n"));
    for (int i = 0; i < depth_; ++i) RETURN_IF_ERROR(Put(*style_.indent));
    return absl::OkStatus();
  }

  absl::Status Close(absl::string_view bracket) {
    if (style_.indent.has_value()) RETURN_IF_ERROR(NewLine());
    return Put(bracket);
  }

  absl::Status WriteList(const List& list) {
    if (list.kind != List::Kind::kList && !list.is_tuple()) {
      return Failure(
          line_, absl::StrCat("a ", list.type_name(), " has no form in JSON"));
    }
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
    std::vector<size_t> places(dict.items.size());
    std::iota(places.begin(), places.end(), size_t{0});
    if (style_.sorted) {
      // The order of bytes is that of characters.
      RETURN_IF_ERROR(
          budget_.TakeSteps(static_cast<int64_t>(places.size()) * 16, line_));
      absl::c_sort(places, [&](size_t a, size_t b) {
        return dict.items[a].first.bytes() < dict.items[b].first.bytes();
      });
    }
    RETURN_IF_ERROR(Put("{"));
    ++depth_;
    for (size_t i = 0; i < places.size(); ++i) {
      const auto& [key, value] = dict.items[places[i]];
      RETURN_IF_ERROR(Separate(i == 0));
      RETURN_IF_ERROR(WriteText(key));
      RETURN_IF_ERROR(Put(style_.key_separator));
      RETURN_IF_ERROR(Write(value));
    }
    --depth_;
    return Close("}");
  }

  const JsonStyle& style_;
  Budget& budget_;
  int line_;
  int depth_ = 0;  // at most kMaxDataDepth
  Text out_;
};

}  // namespace

absl::StatusOr<Text> ToJson(const Value& value, const JsonStyle& style,
                            Budget& budget, int line) {
  Writer writer(style, budget, line);
  RETURN_IF_ERROR(writer.Write(value));
  return writer.Take();
}

}  // namespace penstock::jinja
