#include "common/model/text/jinja/printer.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/letters.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

// A character of a text within quotes.
std::string Escaped(absl::string_view character, char quote) {
  const char32_t c = DecodeUtf8(character);
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\\':
      return "\\\\";
    default:
      break;
  }
  if (c == static_cast<char32_t>(quote)) return std::string({'\\', quote});
  if (IsPrintable(c)) return std::string(character);
  const auto code = static_cast<uint32_t>(c);
  if (c <= 0xFF) return absl::StrFormat("\\x%02x", code);
  if (c <= 0xFFFF) return absl::StrFormat("\\u%04x", code);
  return absl::StrFormat("\\U%08x", code);
}

class Writer {
 public:
  Writer(Budget& budget, int line) : budget_(budget), line_(line) {}

  absl::Status Write(const Value& value) {
    RETURN_IF_ERROR(budget_.TakeSteps(1, line_));
    if (const Text* text = value.text()) return WriteText(*text);
    if (const List* list = value.list()) return WriteList(*list);
    if (const Dict* dict = value.dict()) return WriteDict(*dict);
    if (const bool* boolean = value.boolean()) {
      return Put(*boolean ? "True" : "False");
    }
    if (const int64_t* integer = value.integer()) {
      return Put(absl::StrCat(*integer));
    }
    if (const double* real = value.real()) return Put(FormatReal(*real));
    if (value.is_none()) return Put("None");
    if (value.undefined() != nullptr) return Put("Undefined");
    return Unknown(line_, absl::StrCat("printing a ", value.type_name()));
  }

  Text Take() { return std::move(out_); }

 private:
  absl::Status Put(absl::string_view bytes) {
    RETURN_IF_ERROR(budget_.TakeBytes(bytes.size(), line_));
    out_.Append(bytes, false);
    return absl::OkStatus();
  }

  absl::Status WriteText(const Text& text) {
    const absl::string_view bytes = text.bytes();
    // An escape takes up to six times its character.
    RETURN_IF_ERROR(budget_.TakeBytes(bytes.size() * 6, line_));
    const bool doubled = bytes.find('\'') != absl::string_view::npos &&
                         bytes.find('"') == absl::string_view::npos;
    const char quote = doubled ? '"' : '\'';
    RETURN_IF_ERROR(Put(absl::string_view(&quote, 1)));
    size_t at = 0;
    for (const Text::Run& run : text.runs()) {
      std::string escaped;
      while (at < run.end) {
        const int length = Utf8Length(bytes, at);
        escaped += Escaped(bytes.substr(at, length), quote);
        at += length;
      }
      out_.Append(escaped, run.from_message);
    }
    return Put(absl::string_view(&quote, 1));
  }

  absl::Status WriteList(const List& list) {
    absl::string_view open = list.is_tuple() ? "(" : "[";
    absl::string_view close = list.is_tuple() ? ")" : "]";
    if (list.is_tuple() && list.items.size() == 1) close = ",)";
    switch (list.kind) {
      case List::Kind::kRange:
      case List::Kind::kGenerator:
        return Unknown(line_, absl::StrCat("printing a ", list.type_name()));
      case List::Kind::kKeys:
        open = "dict_keys([";
        close = "])";
        break;
      case List::Kind::kValues:
        open = "dict_values([";
        close = "])";
        break;
      case List::Kind::kItems:
        open = "dict_items([";
        close = "])";
        break;
      default:
        break;
    }
    RETURN_IF_ERROR(Put(open));
    for (size_t i = 0; i < list.items.size(); ++i) {
      RETURN_IF_ERROR(Put(i == 0 ? "" : ", "));
      RETURN_IF_ERROR(Write(list.items[i]));
    }
    return Put(close);
  }

  absl::Status WriteDict(const Dict& dict) {
    RETURN_IF_ERROR(Put("{"));
    for (size_t i = 0; i < dict.items.size(); ++i) {
      RETURN_IF_ERROR(Put(i == 0 ? "" : ", "));
      RETURN_IF_ERROR(WriteText(dict.items[i].first));
      RETURN_IF_ERROR(Put(": "));
      RETURN_IF_ERROR(Write(dict.items[i].second));
    }
    return Put("}");
  }

  Budget& budget_;
  int line_;
  Text out_;
};

}  // namespace

absl::StatusOr<Text> Represented(const Value& value, Budget& budget, int line) {
  Writer writer(budget, line);
  RETURN_IF_ERROR(writer.Write(value));
  return writer.Take();
}

absl::StatusOr<Text> Printed(const Value& value, Budget& budget, int line) {
  if (const Text* text = value.text()) return *text;
  if (value.undefined() != nullptr) return Text();
  return Represented(value, budget, line);
}

}  // namespace penstock::jinja
