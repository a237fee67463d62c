#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock {

// Every way in which the content of a model file can be wrong, one code a
// check. The names are stable: tests, mutation runs and operators count them.
enum class ModelError {
  // The container; some checks are of one format only.
  kBadMagic,
  kUnsupportedVersion,
  kTruncated,      // a fixed-size field lies past the end of the file
  kMetadataCount,  // more entries than the limit or the file can hold
  kTensorCount,    // likewise for tensors
  kBadKey,         // empty, too long, or not printable ASCII
  kDuplicateKey,
  kValueType,     // no such metadata type
  kStringLength,  // a string runs past the end of the file
  kArrayLength,   // an array runs past the end of the file
  kArrayNesting,  // arrays of arrays of arrays of ...
  kBadBool,       // neither 0 nor 1
  kAlignment,     // not a power of two in the allowed range
  kTensorName,    // empty or too long
  kDuplicateTensor,
  kDimensionCount,  // not 1 to 4
  kZeroDimension,
  kShapeOverflow,    // the byte size does not fit 63 bits
  kTensorType,       // a type that this build cannot read
  kPartialBlock,     // a row is not a whole number of blocks
  kTensorAlignment,  // an offset off the file's alignment
  kTensorOutOfFile,
  kTensorOverlap,
  kSplit,         // parts of a split file that do not belong together
  kJson,          // not a JSON object, or too large, or too deep
  kHeaderLength,  // a header longer than the limit or the file
  kTensorFields,  // a tensor's entry lacks a field, or has one too many
  kTensorBytes,   // a tensor's bytes are not those of its shape
  kTensorGap,     // bytes that belong to no tensor
  kShardName,     // no plain file name
  kShardMap,      // the index and the shards disagree
  // The model.
  kMissingKey,
  kKeyType,     // a known key with a value of another type
  kValueRange,  // a number outside what makes sense
  kBadUtf8,
  kArchitecture,    // a model family that this build does not know
  kHeadCount,       // heads, KV heads and width do not divide
  kExpertCount,     // experts, groups and the used ones do not fit
  kLatentWidth,     // widths of latent attention do not fit
  kRopeDimensions,  // odd, or more than a head has
  kRopeScaling,     // a context extension that this build does not know
  kMissingTensor,
  kTensorShape,
  kUnexpectedTensor,  // a weight that the forward pass would leave out
  // The vocabulary.
  kTokenizerModel,  // a tokenizer that this build does not know
  kVocabularySize,  // tokens, embedding rows and vocab_size disagree
  kTokenKindCount,  // not one kind a token
  kTokenKind,       // no such kind
  kEmptyToken,
  kDuplicateToken,
  kMergeSyntax,  // not "left right"
  kMergeToken,   // a part or the result is no token
  kDuplicateMerge,
  kTokenScores,  // not one finite score a token
  kTokenId,      // a special token's id is outside the vocabulary
};

// The codes that a file or folder of a format can have, in declaration order.
enum class ModelFormat { kGguf, kHuggingFace };
std::vector<ModelError> ModelErrorsOf(ModelFormat format);
// "bad_magic".
absl::string_view ModelErrorName(ModelError error);

// The code in an error of the parser; nothing for any other status.
std::optional<ModelError> ModelErrorOf(const absl::Status& status);

// What a check saw. Text from the file is escaped and cut before it is shown.
struct ModelMismatch {
  std::string field;
  std::string found;
  std::string expected;
};

// Makes the errors of one file: each names path and field, says what was found
// and what was expected, and carries its code as a payload. UNIMPLEMENTED for
// what this build does not know, INVALID_ARGUMENT for what is wrong.
class ModelErrorMaker {
 public:
  explicit ModelErrorMaker(std::string path) : path_(std::move(path)) {}
  absl::Status Make(ModelError error, const ModelMismatch& mismatch) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Text of the file for an error message: printable, quoted, at most 80 bytes.
std::string QuoteForError(absl::string_view text);

}  // namespace penstock
