#include "common/model/files/json_config.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace penstock {

const Json* JsonConfig::Find(absl::string_view key) const {
  auto it = object_.find(std::string(key));
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

absl::Status JsonConfig::Error(ModelError error, absl::string_view key,
                               std::string found, std::string expected) const {
  return errors_.Make(error, {.field = absl::StrCat(prefix_, key),
                              .found = std::move(found),
                              .expected = std::move(expected)});
}

absl::StatusOr<const Json*> JsonConfig::Require(absl::string_view key) const {
  if (const Json* value = Find(key)) return value;
  return Error(ModelError::kMissingKey, key, "no such key", "it");
}

absl::Status JsonConfig::WrongType(absl::string_view key, const Json& value,
                                   absl::string_view expected) const {
  return Error(ModelError::kKeyType, key,
               absl::StrCat("JSON type ", value.type_name()),
               std::string(expected));
}

absl::StatusOr<int64_t> JsonConfig::AsInteger(absl::string_view key,
                                              const Json& value,
                                              IntegerRange range) const {
  if (!value.is_number_integer()) {
    return WrongType(key, value, "an integer");
  }
  // Beyond every range as well, when it does not fit.
  const int64_t number =
      value.is_number_unsigned() &&
              value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)
          ? INT64_MAX
          : value.get<int64_t>();
  if (number < range.low || number > range.high) {
    return Error(ModelError::kValueRange, key, absl::StrCat(number),
                 absl::StrCat(range.low, " to ", range.high));
  }
  return number;
}

absl::StatusOr<double> JsonConfig::AsFloat(absl::string_view key,
                                           const Json& value,
                                           FloatRange range) const {
  if (!value.is_number()) return WrongType(key, value, "a number");
  const double number = value.get<double>();
  if (!(number >= range.low && number <= range.high)) {
    return Error(ModelError::kValueRange, key, absl::StrCat(number),
                 absl::StrCat(range.low, " to ", range.high));
  }
  return number;
}

absl::StatusOr<int64_t> JsonConfig::Integer(absl::string_view key,
                                            IntegerRange range) const {
  ASSIGN_OR_RETURN(const Json* value, Require(key));
  return AsInteger(key, *value, range);
}

absl::StatusOr<double> JsonConfig::Float(absl::string_view key,
                                         FloatRange range) const {
  ASSIGN_OR_RETURN(const Json* value, Require(key));
  return AsFloat(key, *value, range);
}

absl::StatusOr<bool> JsonConfig::Bool(absl::string_view key) const {
  ASSIGN_OR_RETURN(const Json* value, Require(key));
  if (!value->is_boolean()) return WrongType(key, *value, "true or false");
  return value->get<bool>();
}

absl::StatusOr<std::string> JsonConfig::String(absl::string_view key) const {
  ASSIGN_OR_RETURN(const Json* value, Require(key));
  if (!value->is_string()) return WrongType(key, *value, "a string");
  return value->get<std::string>();
}

absl::StatusOr<std::vector<double>> JsonConfig::Floats(absl::string_view key,
                                                       FloatRange range) const {
  ASSIGN_OR_RETURN(const Json* value, Require(key));
  if (!value->is_array()) return WrongType(key, *value, "a list of numbers");
  std::vector<double> numbers;
  for (const Json& element : *value) {
    ASSIGN_OR_RETURN(double number, AsFloat(key, element, range));
    numbers.push_back(number);
  }
  return numbers;
}

absl::StatusOr<std::vector<int64_t>> JsonConfig::Integers(
    absl::string_view key, IntegerRange range) const {
  ASSIGN_OR_RETURN(const Json* value, Require(key));
  std::vector<int64_t> numbers;
  if (!value->is_array()) {
    ASSIGN_OR_RETURN(int64_t number, AsInteger(key, *value, range));
    return std::vector<int64_t>{number};
  }
  for (const Json& element : *value) {
    ASSIGN_OR_RETURN(int64_t number, AsInteger(key, element, range));
    numbers.push_back(number);
  }
  return numbers;
}

absl::StatusOr<std::vector<std::string>> JsonConfig::Strings(
    absl::string_view key) const {
  ASSIGN_OR_RETURN(const Json* value, Require(key));
  if (!value->is_array()) return WrongType(key, *value, "a list of strings");
  std::vector<std::string> strings;
  for (const Json& element : *value) {
    if (!element.is_string()) return WrongType(key, element, "strings");
    strings.push_back(element.get<std::string>());
  }
  return strings;
}

absl::StatusOr<std::optional<JsonConfig>> JsonConfig::Object(
    absl::string_view key) const {
  const Json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) return WrongType(key, *value, "an object");
  return JsonConfig(*value, errors_, absl::StrCat(prefix_, key, "."));
}

}  // namespace penstock
