#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/files/config_fields.h"
#include "common/model/files/json_document.h"
#include "common/model/files/model_error.h"

namespace penstock {

// A JSON object. A null is as good as absent. Object and errors must outlive
// it.
class JsonConfig final : public ConfigFields {
 public:
  // `prefix` is put before keys in messages: "rope_scaling.".
  JsonConfig(const Json& object, const ModelErrorMaker& errors,
             std::string prefix = "")
      : object_(object), errors_(errors), prefix_(std::move(prefix)) {}

  bool Has(absl::string_view key) const override {
    return Find(key) != nullptr;
  }

  absl::StatusOr<int64_t> Integer(absl::string_view key,
                                  IntegerRange range) const override;
  absl::StatusOr<double> Float(absl::string_view key,
                               FloatRange range) const override;
  absl::StatusOr<bool> Bool(absl::string_view key) const override;
  absl::StatusOr<std::string> String(absl::string_view key) const override;
  absl::StatusOr<std::vector<double>> Floats(absl::string_view key,
                                             FloatRange range) const;
  // One integer, or a list of them.
  absl::StatusOr<std::vector<int64_t>> Integers(absl::string_view key,
                                                IntegerRange range) const;
  absl::StatusOr<std::vector<std::string>> Strings(absl::string_view key) const;

  // The fields of an object within; nothing when absent.
  absl::StatusOr<std::optional<JsonConfig>> Object(absl::string_view key) const;

  // An error about a key of this object.
  absl::Status Error(ModelError error, absl::string_view key, std::string found,
                     std::string expected) const override;

 private:
  const Json* Find(absl::string_view key) const;
  absl::StatusOr<const Json*> Require(absl::string_view key) const;
  absl::Status WrongType(absl::string_view key, const Json& value,
                         absl::string_view expected) const;
  absl::StatusOr<int64_t> AsInteger(absl::string_view key, const Json& value,
                                    IntegerRange range) const;
  absl::StatusOr<double> AsFloat(absl::string_view key, const Json& value,
                                 FloatRange range) const;

  const Json& object_;
  const ModelErrorMaker& errors_;
  std::string prefix_;
};

}  // namespace penstock
