#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace penstock {

// A value in a JSON text and the way to it, for reads that say what is wrong
// where: "tokenizer.json: model.vocab is ...". The text's tree must outlive it.
// Absent and null are one.
class JsonValue {
 public:
  // `path`: the file, then keys and places.
  JsonValue(const nlohmann::json* value, std::string path)
      : value_(value), path_(std::move(path)) {}

  bool absent() const { return value_ == nullptr || value_->is_null(); }
  bool is_array() const { return !absent() && value_->is_array(); }
  bool is_object() const { return !absent() && value_->is_object(); }
  bool is_string() const { return !absent() && value_->is_string(); }
  // Precondition: not absent.
  const nlohmann::json& json() const { return *value_; }
  const std::string& path() const { return path_; }

  // A member; absent when this is no object.
  JsonValue Member(const char* key) const;
  // An element. Precondition: is_array() and within.
  JsonValue Element(size_t place) const;
  // Of an array or object; else 0.
  size_t size() const;

  // INVALID_ARGUMENT names the path, what is there and what should be.
  absl::StatusOr<std::string> String() const;
  absl::StatusOr<double> Number() const;
  absl::StatusOr<int64_t> Integer() const;
  absl::StatusOr<bool> BoolOr(bool absent) const;
  absl::Status CheckArray() const;
  absl::Status CheckObject() const;

  absl::Status Error(absl::string_view what) const;
  // UNIMPLEMENTED: the `what` of that name is not known.
  absl::Status Unknown(absl::string_view what, absl::string_view name) const;

 private:
  absl::Status WrongType(absl::string_view expected) const;

  const nlohmann::json* value_;
  std::string path_;
};

// The tree of a JSON text. INVALID_ARGUMENT names `file`: the text is not JSON,
// longer than 64 MiB, nested deeper than 32, or of more than 6 million values,
// which is all checked before memory is spent.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view file,
                                         absl::string_view text);

}  // namespace penstock
