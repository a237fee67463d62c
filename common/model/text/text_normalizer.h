#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/text/regex.h"
#include "common/model/vocabulary.h"

namespace penstock {

// Changes text before it is cut into pieces: a row of steps, each applied to
// what the one before it made. Immutable; safe from any thread.
class TextNormalizer {
 public:
  // Errors as Regex::Compile; INVALID_ARGUMENT for an empty pattern.
  static absl::StatusOr<TextNormalizer> Create(
      absl::Span<const NormalizerStep> steps);

  // Whether it leaves every text as it is.
  bool empty() const { return steps_.empty(); }

  // Precondition: `text` is UTF-8, and so is the result. RESOURCE_EXHAUSTED
  // when it grows over four times kMaxTextBytes, or as Regex.
  absl::StatusOr<std::string> Apply(absl::string_view text) const;

 private:
  struct Step {
    NormalizerStep step;
    std::unique_ptr<Regex> regex;
  };
  std::vector<Step> steps_;
};

}  // namespace penstock
