#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/id.h"
#include "router/http/openai/json_body.h"

namespace penstock {

// Reads the members of one JSON object by name. A member that is null counts as
// absent; one that nobody asks for is tolerated. The first that is of a wrong
// type or out of range makes status() an error that names it; what is read
// after that is of no use. The object outlives the reader.
class BodyFields {
 public:
  // `path` goes before every name: "messages[2]."; empty at the top.
  explicit BodyFields(const ApiJson& object, std::string path = "")
      : object_(object), path_(std::move(path)) {}

  // Null when absent.
  const ApiJson* Find(absl::string_view name) const;

  // `otherwise` when absent.
  bool Bool(absl::string_view name, bool otherwise);
  // Whole numbers, written as 5 or 5.0.
  int64_t Int64(absl::string_view name, int64_t otherwise);
  int Int(absl::string_view name, int otherwise);
  float Float(absl::string_view name, float otherwise);
  // At most `max_bytes`.
  std::string String(absl::string_view name, size_t max_bytes);
  // Empty when absent. A string counts as a list of one where `or_one`.
  std::vector<std::string> Strings(absl::string_view name, bool or_one);
  std::vector<TokenId> Tokens(absl::string_view name);

  // Refuses a member that is there, with anything but null, an empty list, an
  // empty object or false in it.
  void RefuseSet(absl::string_view name, absl::string_view why);

  void Fail(const absl::Status& status) { status_.Update(status); }
  // An error about one member: "NAME WHY".
  void FailAt(absl::string_view name, absl::string_view why);

  std::string PathOf(absl::string_view name) const;
  const absl::Status& status() const { return status_; }

 private:
  const ApiJson& object_;
  const std::string path_;
  absl::Status status_;
};

// An error about one field: its message is "FIELD WHY".
absl::Status BodyFieldError(absl::string_view field, absl::string_view why);

// The token ids of an array, INVALID_ARGUMENT naming an element that is none.
absl::StatusOr<std::vector<TokenId>> TokensOf(const ApiJson& array,
                                              const std::string& field);

}  // namespace penstock
