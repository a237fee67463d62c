#pragma once

#include <string>
#include <vector>

#include "common/base/id.h"

namespace penstock {

enum class TokenKind {
  kNormal,
  kControl,
  kUserDefined,
  kUnknown,
  kByte,
  kUnused
};

// A rule of byte pair encoding: two neighbours and the token they become.
struct TokenMerge {
  TokenId left = -1;
  TokenId right = -1;
  TokenId result = -1;
};

// One step of what happens to text before it is cut into pieces.
struct NormalizerStep {
  enum class Kind {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kStrip,         // white space at the ends that `left` and `right` name
    kPrepend,       // `text` before a text that is not empty
    kReplace,       // every occurrence of `pattern` by `text`
    kReplaceRegex,  // every match of `pattern` by `text`, taken literally
  };
  Kind kind = Kind::kNfc;
  std::string pattern;
  std::string text;
  bool left = false;
  bool right = false;
};

// One step of cutting text into pieces that no token reaches across; each
// applies to the pieces that the one before it left.
struct PreTokenizerStep {
  enum class Kind {
    kRegex,        // cut by the matches of `pattern`
    kLiteral,      // cut by the occurrences of `pattern`
    kMetaspace,    // spaces become `pattern`, and perhaps one is put in front
    kPrefixSpace,  // a space in front of a piece that has none
  };
  // What becomes of a match (with `invert`: of what lies between matches).
  enum class Behavior {
    kIsolated,
    kRemoved,
    kMergedWithPrevious,
    kMergedWithNext,
    kContiguous,  // neighbouring matches are one piece
  };
  // Where kMetaspace puts one in front.
  enum class Prepend { kNever, kFirst, kAlways };

  Kind kind = Kind::kRegex;
  std::string pattern;
  Behavior behavior = Behavior::kIsolated;
  bool invert = false;
  Prepend prepend = Prepend::kNever;
  bool split = true;  // kMetaspace: whether each `pattern` begins a piece
};

// How the text of a control or user-defined token is recognised; one that is
// not listed is sought exactly as it is spelled, anywhere.
struct TokenMatching {
  TokenId id = -1;
  bool left_strip = false;   // white space before it belongs to it
  bool right_strip = false;  // and after it
  bool single_word = false;  // not next to a letter, digit or underscore
  bool normalized = false;   // sought in normalised text
};

// What a tokenizer needs from a model file. Plain data, immutable.
struct Vocabulary {
  // As tokenizer.ggml.model names it: "gpt2", byte-level BPE by merges;
  // "llama", SentencePiece BPE by scores; "t5", SentencePiece unigram. "bpe" is
  // what only a tokenizer.json has: BPE of characters by merges.
  std::string model;
  // tokenizer.ggml.pre, e.g. "smollm": a row of steps by name. Empty: the steps
  // below hold.
  std::string pre_tokenizer;
  std::vector<std::string> tokens;  // in the file's own (byte-level) alphabet
  std::vector<TokenKind> kinds;     // as many as tokens
  std::vector<double> scores;       // "llama", "t5": as many as tokens
  std::vector<TokenMerge> merges;   // "gpt2", "bpe": best rank first
  std::vector<NormalizerStep> normalizers;
  std::vector<PreTokenizerStep> pre_tokenizers;
  std::vector<TokenMatching> matchings;
  // A piece that is a token as a whole is that token, whatever the merges say.
  bool ignore_merges = false;
  // A character that has no token becomes the kByte tokens of its bytes.
  bool byte_fallback = false;
  // What has no token at all becomes `unknown` (else it vanishes), neighbours
  // together when fused.
  bool use_unknown = false;
  bool fuse_unknown = false;
  // U+2581 in a token is a space in text.
  bool escaped_spaces = false;
  // A text as a whole loses the space that its first token begins with.
  bool strip_first_space = false;
  TokenId bos = -1;  // -1: none
  TokenId eos = -1;
  TokenId unknown = -1;
  bool add_bos = false;
  bool add_eos = false;
  // Tokens that end a generation: eos and what the vocabulary marks as end of
  // turn or text.
  std::vector<TokenId> stop_tokens;
};

}  // namespace penstock
