#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/files/gguf_metadata.h"
#include "common/model/files/model_error.h"

namespace penstock {

// Typed reads of a model's configuration by key, whatever its format, that say
// what is wrong: kMissingKey, kKeyType, kValueRange. Immutable.
class ConfigFields {
 public:
  virtual ~ConfigFields() = default;

  virtual bool Has(absl::string_view key) const = 0;
  virtual absl::StatusOr<int64_t> Integer(absl::string_view key,
                                          IntegerRange range) const = 0;
  virtual absl::StatusOr<double> Float(absl::string_view key,
                                       FloatRange range) const = 0;
  virtual absl::StatusOr<bool> Bool(absl::string_view key) const = 0;
  virtual absl::StatusOr<std::string> String(absl::string_view key) const = 0;

  // The same, with a value for an absent key.
  absl::StatusOr<int64_t> IntegerOr(absl::string_view key, IntegerRange range,
                                    int64_t absent) const {
    if (!Has(key)) return absent;
    return Integer(key, range);
  }
  absl::StatusOr<double> FloatOr(absl::string_view key, FloatRange range,
                                 double absent) const {
    if (!Has(key)) return absent;
    return Float(key, range);
  }
  absl::StatusOr<bool> BoolOr(absl::string_view key, bool absent) const {
    if (!Has(key)) return absent;
    return Bool(key);
  }
  absl::StatusOr<std::string> StringOr(absl::string_view key,
                                       absl::string_view absent) const {
    if (!Has(key)) return std::string(absent);
    return String(key);
  }

  // An error about a key.
  virtual absl::Status Error(ModelError error, absl::string_view key,
                             std::string found, std::string expected) const = 0;
};

}  // namespace penstock
