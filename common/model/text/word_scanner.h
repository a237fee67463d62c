#pragma once

#include <cstddef>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock {

// A range of bytes of a text.
struct TextRange {
  size_t begin;
  size_t end;
};

// Cuts text[range] as a pattern does when what it matches, and what lies
// between matches, is a piece each: appends the pieces in order. Preconditions:
// `text` is UTF-8 and `range` lies on boundaries.
using ScanWords = void (*)(absl::string_view text, TextRange range,
                           std::vector<TextRange>& pieces);

// The scanner written for a pattern, or null. Carriage returns and line feeds
// of the pattern may be literal or escaped. Scanners make one pass and allocate
// nothing; PCRE2 is their oracle in the tests.
ScanWords FindWordScanner(absl::string_view pattern);

// All patterns that have one, for tests.
std::vector<absl::string_view> ScannedPatterns();

}  // namespace penstock
