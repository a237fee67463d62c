#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {

// Writes a pattern of a tokenizer.json, which is in Oniguruma's dialect, so
// that PCRE2 understands the same by it. White space is spelt out as Unicode's
// White_Space property: PCRE2's \s counts U+180E too.
class RegexTranslator {
 public:
  explicit RegexTranslator(absl::string_view pattern) : pattern_(pattern) {}

  // UNIMPLEMENTED names what cannot be said in PCRE2, or would be something
  // else there.
  absl::StatusOr<std::string> Translate();

 private:
  absl::Status Escape();
  absl::Status InClass();
  absl::Status Group();
  absl::Status Unknown(absl::string_view what) const;

  absl::string_view pattern_;
  size_t at_ = 0;
  bool in_class_ = false;
  std::string out_;
};

}  // namespace penstock
