#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "protos/inference.pb.h"

namespace penstock {

// How the answers of a conversation are drawn and where they end: the fields of
// the API's own messages Sampling and Stop that hold one value, by their names
// there. A value type.
class ChatSettings {
 public:
  // INVALID_ARGUMENT: a name that is not known, naming all that are, or a value
  // that is none of the field's type or range. Nothing changes then. The value
  // "default" takes the field back.
  absl::Status Set(absl::string_view name, absl::string_view value);

  // Every setting, a line each, as `name = value`.
  std::string Describe() const;

  static std::vector<std::string> Names();

  // The request's sampling and stop.
  const v1::GenerateRequest& request() const { return request_; }

 private:
  v1::GenerateRequest request_;
};

}  // namespace penstock
