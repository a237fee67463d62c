#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/id.h"
#include "common/model/text/text_stream.h"
#include "common/model/text/tokenizer.h"

namespace penstock {

// The text side of one sequence: tokens in, deliverable text out. Output is
// whole characters at any time, without special tokens, and no part of a stop
// string is ever in it. A value with one owner; on another worker it is made
// again from the tokens. Keeps a pointer to the tokenizer, which must outlive
// it.
class SequenceText {
 public:
  static constexpr size_t kMaxStops = 64;
  static constexpr size_t kMaxStopBytes = 4096;

  // Whether the tokens go on from text before them or begin a text, as an
  // answer after a control token does: then a space in front that tokenizers of
  // SentencePiece put there is left out (Tokenizer::strip_first_space).
  enum class Start { kContinues, kBegins };

  // Precondition: within the bounds above, none empty (the edge allows less).
  explicit SequenceText(const Tokenizer* tokenizer,
                        std::vector<std::string> stops = {},
                        Start start = Start::kContinues);

  // `text` may be empty; it can hold text of earlier tokens. After `stopped`
  // the sequence has ended: no Push or Flush may follow.
  using Result = StopMatcher::Result;

  // Precondition: the id is within the vocabulary.
  Result Push(TokenId id);
  // Of a token whose text is no part of any stop string, whatever it holds.
  Result PushUnsearched(TokenId id);
  // At the end without a stop string: what was held back, an unfinished
  // character as U+FFFD (which itself may complete a stop string).
  Result Flush();

 private:
  // The bytes that a token adds here. Precondition: it is not special.
  absl::string_view Bytes(TokenId id);

  const Tokenizer* tokenizer_;
  bool strip_space_;  // no token has given text yet, and its space goes
  Utf8Assembler assembler_;
  StopMatcher matcher_;
};

}  // namespace penstock
