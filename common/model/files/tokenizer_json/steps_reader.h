#pragma once

#include "absl/status/status.h"
#include "common/base/id.h"
#include "common/model/files/tokenizer_json/json_value.h"
#include "common/model/vocabulary.h"

namespace penstock {

// The parts of a tokenizer.json around its model. Each reads one value and adds
// to the vocabulary; UNIMPLEMENTED names a type or option that is not known and
// where it is, INVALID_ARGUMENT what is wrong.

absl::Status ReadNormalizer(const JsonValue& value, Vocabulary& vocabulary);

// `byte_level`: set when the pieces' bytes are what the model works on.
absl::Status ReadPreTokenizer(const JsonValue& value, Vocabulary& vocabulary,
                              bool& byte_level);

absl::Status ReadDecoder(const JsonValue& value, Vocabulary& vocabulary);

// The tokens that belong in front of and behind a text; -1: none.
struct TextFrame {
  TokenId before = -1;
  TokenId after = -1;
};
absl::Status ReadPostProcessor(const JsonValue& value, TextFrame& frame);

}  // namespace penstock
