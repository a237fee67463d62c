#include "router/http/openai/body_fields.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

// A whole number that fits; what comes as unsigned need not.
std::optional<int64_t> WholeNumber(const ApiJson& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return std::nullopt;
    }
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.get<double>();
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (!(std::abs(number) <= kExact) || number != std::floor(number)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(number);
}

std::string MustBe(absl::string_view what, const ApiJson& value) {
  return absl::StrCat("must be ", what, ", not ", value.type_name());
}

}  // namespace

absl::Status BodyFieldError(absl::string_view field, absl::string_view why) {
  return MakeError(ErrorReason::kInvalidField, absl::StrCat(field, " ", why),
                   field);
}

absl::StatusOr<std::vector<TokenId>> TokensOf(const ApiJson& array,
                                              const std::string& field) {
  if (!array.is_array()) {
    return BodyFieldError(field, MustBe("a list of token ids", array));
  }
  std::vector<TokenId> ids;
  ids.reserve(array.size());
  for (const ApiJson& element : array) {
    const std::optional<int64_t> id = WholeNumber(element);
    if (!id || *id < 0 || *id > std::numeric_limits<TokenId>::max()) {
      return BodyFieldError(absl::StrCat(field, "[", ids.size(), "]"),
                            "is no token id; give whole numbers from 0");
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

const ApiJson* BodyFields::Find(absl::string_view name) const {
  const auto found = object_.find(std::string(name));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::string BodyFields::PathOf(absl::string_view name) const {
  return absl::StrCat(path_, ShortForError(name));
}

void BodyFields::FailAt(absl::string_view name, absl::string_view why) {
  Fail(BodyFieldError(PathOf(name), why));
}

bool BodyFields::Bool(absl::string_view name, bool otherwise) {
  const ApiJson* value = Find(name);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  FailAt(name, MustBe("true or false", *value));
  return otherwise;
}

int64_t BodyFields::Int64(absl::string_view name, int64_t otherwise) {
  const ApiJson* value = Find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) {
    FailAt(name, MustBe("a whole number", *value));
    return otherwise;
  }
  const std::optional<int64_t> number = WholeNumber(*value);
  if (!number) FailAt(name, "must be a whole number of 64 bits");
  return number.value_or(otherwise);
}

int BodyFields::Int(absl::string_view name, int otherwise) {
  const int64_t number = Int64(name, otherwise);
  if (number >= std::numeric_limits<int>::min() &&
      number <= std::numeric_limits<int>::max()) {
    return static_cast<int>(number);
  }
  FailAt(name, absl::StrCat("is ", number, "; it must be a number of 32 bits"));
  return otherwise;
}

float BodyFields::Float(absl::string_view name, float otherwise) {
  const ApiJson* value = Find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) {
    FailAt(name, MustBe("a number", *value));
    return otherwise;
  }
  const auto number = value->get<double>();
  if (!(std::abs(number) <= std::numeric_limits<float>::max())) {
    FailAt(name, absl::StrCat("is ", number, ", which is out of range"));
    return otherwise;
  }
  return static_cast<float>(number);
}

std::string BodyFields::String(absl::string_view name, size_t max_bytes) {
  const ApiJson* value = Find(name);
  if (value == nullptr) return "";
  if (!value->is_string()) {
    FailAt(name, MustBe("a string", *value));
    return "";
  }
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() > max_bytes) {
    FailAt(name, absl::StrCat("has ", text.size(), " bytes; at most ",
                              max_bytes, " are allowed"));
    return "";
  }
  return text;
}

std::vector<std::string> BodyFields::Strings(absl::string_view name,
                                             bool or_one) {
  const ApiJson* value = Find(name);
  if (value == nullptr) return {};
  if (or_one && value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) {
    FailAt(name, MustBe("a list of strings", *value));
    return {};
  }
  std::vector<std::string> texts;
  for (const ApiJson& element : *value) {
    if (!element.is_string()) {
      FailAt(absl::StrCat(name, "[", texts.size(), "]"),
             MustBe("a string", element));
      return {};
    }
    texts.push_back(element.get<std::string>());
  }
  return texts;
}

std::vector<TokenId> BodyFields::Tokens(absl::string_view name) {
  const ApiJson* value = Find(name);
  if (value == nullptr) return {};
  absl::StatusOr<std::vector<TokenId>> ids = TokensOf(*value, PathOf(name));
  if (ids.ok()) return *std::move(ids);
  Fail(ids.status());
  return {};
}

void BodyFields::RefuseSet(absl::string_view name, absl::string_view why) {
  const ApiJson* value = Find(name);
  if (value == nullptr || *value == ApiJson(false)) return;
  if (value->is_structured() && value->empty()) return;
  const std::string field = PathOf(name);
  Fail(MakeError(ErrorReason::kFieldNotImplemented,
                 absl::StrCat(field, " ", why), field));
}

}  // namespace penstock
