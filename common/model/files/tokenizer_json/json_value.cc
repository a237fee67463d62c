#include "common/model/files/tokenizer_json/json_value.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr size_t kMaxBytes = size_t{64} << 20;
constexpr int kMaxDepth = 32;
constexpr size_t kMaxValues = 6'000'000;
constexpr size_t kMaxShown = 80;

// The nesting and number of values of a text that may yet not be JSON.
struct Extent {
  int depth = 0;
  size_t values = 0;
};

Extent Measure(absl::string_view text) {
  Extent extent;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      extent.depth = std::max(extent.depth, ++depth);
      ++extent.values;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' || c == ':') {
      ++extent.values;
    }
  }
  return extent;
}

}  // namespace

JsonValue JsonValue::Member(const char* key) const {
  const nlohmann::json* member = nullptr;
  if (is_object()) {
    const auto found = value_->find(key);
    if (found != value_->end()) member = &*found;
  }
  const bool of_file = path_.find(": ") == std::string::npos;
  return {member, absl::StrCat(path_, of_file ? ": " : ".", key)};
}

JsonValue JsonValue::Element(size_t place) const {
  return {&(*value_)[place], absl::StrCat(path_, "[", place, "]")};
}

size_t JsonValue::size() const {
  return is_array() || is_object() ? value_->size() : 0;
}

absl::Status JsonValue::Error(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, " ", what));
}

absl::Status JsonValue::Unknown(absl::string_view what,
                                absl::string_view name) const {
  return absl::UnimplementedError(absl::StrCat(
      path_, ": ", what, " '", absl::CHexEscape(name.substr(0, kMaxShown)),
      "' is not known to this build"));
}

absl::Status JsonValue::WrongType(absl::string_view expected) const {
  return Error(absl::StrCat("is ", absent() ? "absent" : value_->type_name(),
                            ", not ", expected));
}

absl::StatusOr<std::string> JsonValue::String() const {
  if (!is_string()) return WrongType("a string");
  return value_->get<std::string>();
}

absl::StatusOr<double> JsonValue::Number() const {
  if (absent() || !value_->is_number()) return WrongType("a number");
  return value_->get<double>();
}

absl::StatusOr<int64_t> JsonValue::Integer() const {
  if (absent() || !value_->is_number_integer()) return WrongType("an integer");
  return value_->get<int64_t>();
}

absl::StatusOr<bool> JsonValue::BoolOr(bool absent_value) const {
  if (absent()) return absent_value;
  if (!value_->is_boolean()) return WrongType("true or false");
  return value_->get<bool>();
}

absl::Status JsonValue::CheckArray() const {
  return is_array() ? absl::OkStatus() : WrongType("an array");
}

absl::Status JsonValue::CheckObject() const {
  return is_object() ? absl::OkStatus() : WrongType("an object");
}

absl::StatusOr<nlohmann::json> ParseJson(absl::string_view file,
                                         absl::string_view text) {
  const auto wrong = [file](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(file, " ", what));
  };
  if (text.size() > kMaxBytes) {
    return wrong(
        absl::StrCat("has ", text.size(), " bytes, more than ", kMaxBytes));
  }
  const Extent extent = Measure(text);
  if (extent.depth > kMaxDepth) {
    return wrong(absl::StrCat("is nested deeper than ", kMaxDepth));
  }
  if (extent.values > kMaxValues) {
    return wrong(absl::StrCat("has more than ", kMaxValues, " values"));
  }
  nlohmann::json json = nlohmann::json::parse(text.begin(), text.end(), nullptr,
                                              /*allow_exceptions=*/false);
  if (json.is_discarded()) return wrong("is not JSON in UTF-8");
  return json;
}

}  // namespace penstock
