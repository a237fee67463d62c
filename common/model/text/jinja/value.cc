#include "common/model/text/jinja/value.h"

#include <charconv>
#include <cmath>

namespace penstock::jinja {
namespace {

const int64_t kZero = 0;
const int64_t kOne = 1;

}  // namespace

const Value* Dict::Find(absl::string_view key) const {
  for (const auto& [name, value] : items) {
    if (name.bytes() == key) return &value;
  }
  return nullptr;
}

absl::string_view List::type_name() const {
  static constexpr absl::string_view kNames[] = {
      "list",      "tuple",       "tuple",      "range",
      "dict_keys", "dict_values", "dict_items", "generator"};
  return kNames[static_cast<int>(kind)];
}

void Dict::Put(const Text& key, Value value) {
  for (auto& [name, item] : items) {
    if (name.bytes() == key.bytes()) {
      item = std::move(value);
      return;
    }
  }
  items.emplace_back(key, std::move(value));
}

const int64_t* Value::AsInteger() const {
  if (const bool* value = boolean()) return *value ? &kOne : &kZero;
  return integer();
}

int Value::depth() const {
  if (const List* value = list()) return value->depth;
  if (const Dict* value = dict()) return value->depth;
  return 0;
}

bool Value::Truthy() const {
  if (undefined() != nullptr || is_none()) return false;
  if (const int64_t* value = AsInteger()) return *value != 0;
  if (const double* value = real()) return *value != 0;
  if (const Text* value = text()) return !value->empty();
  if (const List* value = list()) {
    return value->kind == List::Kind::kGenerator || !value->items.empty();
  }
  if (const Dict* value = dict()) return !value->items.empty();
  return true;
}

absl::string_view Value::type_name() const {
  static constexpr absl::string_view kNames[] = {
      "undefined", "None", "bool",      "int",  "float",    "str",
      "list",      "dict", "namespace", "loop", "function", "macro"};
  if (const List* items = list()) return items->type_name();
  return kNames[data_.index()];
}

std::string FormatReal(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (value == 0) return std::signbit(value) ? "-0.0" : "0.0";
  // Python changes to an exponent below 1e-4 and from 1e16 on.
  const double magnitude = std::abs(value);
  const bool plain = magnitude >= 1e-4 && magnitude < 1e16;
  char buffer[64];
  const std::to_chars_result end = std::to_chars(
      buffer, buffer + sizeof(buffer), value,
      plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace penstock::jinja
