#pragma once

#include <istream>
#include <ostream>

#include "absl/status/status.h"
#include "common/model/text/tokenizer.h"

namespace penstock {

// How tokenize and detokenize read and write their lines.
enum class LineFormat {
  kText,  // text, or ids with spaces between
  kJson,  // {"text", "parse_special"} or {"ids"}
};

// Encodes each line of `in`. `special` is for lines that do not say
// parse_special themselves. Stops at the first bad line: INVALID_ARGUMENT names
// its number. Lines before it have been written.
absl::Status TokenizeLines(const Tokenizer& tokenizer, LineFormat format,
                           SpecialTokens special, std::istream& in,
                           std::ostream& out);

// Decodes each line of `in`; bytes that are no UTF-8 become U+FFFD. Errors as
// above; an id outside the vocabulary is one.
absl::Status DetokenizeLines(const Tokenizer& tokenizer, LineFormat format,
                             std::istream& in, std::ostream& out);

}  // namespace penstock
