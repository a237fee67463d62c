#include "common/model/files/gguf_error.h"

#include <array>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr absl::string_view kPayloadUrl = "penstock/gguf-error";

enum class Class { kWrong, kUnknown };

struct Row {
  GgufError error;
  absl::string_view name;
  Class error_class = Class::kWrong;
};

constexpr Row kRows[] = {
    {GgufError::kBadMagic, "bad_magic"},
    {GgufError::kUnsupportedVersion, "unsupported_version", Class::kUnknown},
    {GgufError::kTruncated, "truncated"},
    {GgufError::kMetadataCount, "metadata_count"},
    {GgufError::kTensorCount, "tensor_count"},
    {GgufError::kBadKey, "bad_key"},
    {GgufError::kDuplicateKey, "duplicate_key"},
    {GgufError::kValueType, "value_type"},
    {GgufError::kStringLength, "string_length"},
    {GgufError::kArrayLength, "array_length"},
    {GgufError::kArrayNesting, "array_nesting"},
    {GgufError::kBadBool, "bad_bool"},
    {GgufError::kAlignment, "alignment"},
    {GgufError::kTensorName, "tensor_name"},
    {GgufError::kDuplicateTensor, "duplicate_tensor"},
    {GgufError::kDimensionCount, "dimension_count"},
    {GgufError::kZeroDimension, "zero_dimension"},
    {GgufError::kShapeOverflow, "shape_overflow"},
    {GgufError::kTensorType, "tensor_type", Class::kUnknown},
    {GgufError::kPartialBlock, "partial_block"},
    {GgufError::kTensorAlignment, "tensor_alignment"},
    {GgufError::kTensorOutOfFile, "tensor_out_of_file"},
    {GgufError::kTensorOverlap, "tensor_overlap"},
    {GgufError::kMissingKey, "missing_key"},
    {GgufError::kKeyType, "key_type"},
    {GgufError::kValueRange, "value_range"},
    {GgufError::kBadUtf8, "bad_utf8"},
    {GgufError::kArchitecture, "architecture", Class::kUnknown},
    {GgufError::kHeadCount, "head_count"},
    {GgufError::kRopeDimensions, "rope_dimensions"},
    {GgufError::kRopeScaling, "rope_scaling", Class::kUnknown},
    {GgufError::kMissingTensor, "missing_tensor"},
    {GgufError::kTensorShape, "tensor_shape"},
    {GgufError::kUnexpectedTensor, "unexpected_tensor", Class::kUnknown},
    {GgufError::kTokenizerModel, "tokenizer_model", Class::kUnknown},
    {GgufError::kVocabularySize, "vocabulary_size"},
    {GgufError::kTokenKindCount, "token_kind_count"},
    {GgufError::kTokenKind, "token_kind"},
    {GgufError::kEmptyToken, "empty_token"},
    {GgufError::kDuplicateToken, "duplicate_token"},
    {GgufError::kMergeSyntax, "merge_syntax"},
    {GgufError::kMergeToken, "merge_token"},
    {GgufError::kDuplicateMerge, "duplicate_merge"},
    {GgufError::kTokenScores, "token_scores"},
    {GgufError::kTokenId, "token_id"},
};

constexpr size_t kErrorCount = std::size(kRows);

// A row's place is its code's value: lookups index the table.
constexpr bool RowsAreInOrder() {
  for (size_t i = 0; i < kErrorCount; ++i) {
    if (static_cast<size_t>(kRows[i].error) != i) return false;
  }
  return true;
}
static_assert(RowsAreInOrder());
static_assert(static_cast<size_t>(GgufError::kTokenId) + 1 == kErrorCount);

const Row& RowOf(GgufError error) { return kRows[static_cast<size_t>(error)]; }

}  // namespace

absl::Span<const GgufError> AllGgufErrors() {
  static constexpr auto kAll = [] {
    std::array<GgufError, kErrorCount> all{};
    for (size_t i = 0; i < kErrorCount; ++i) all[i] = kRows[i].error;
    return all;
  }();
  return kAll;
}

absl::string_view GgufErrorName(GgufError error) { return RowOf(error).name; }

std::optional<GgufError> GgufErrorOf(const absl::Status& status) {
  absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  if (!payload) return std::nullopt;
  std::string name(*payload);
  for (const Row& row : kRows) {
    if (row.name == name) return row.error;
  }
  return std::nullopt;
}

absl::Status GgufErrorMaker::Make(GgufError error,
                                  const GgufMismatch& mismatch) const {
  constexpr size_t kMaxFieldBytes = 160;
  const Row& row = RowOf(error);
  std::string message = absl::StrCat(
      path_, ": ", mismatch.field.substr(0, kMaxFieldBytes), ": found ",
      mismatch.found, ", expected ", mismatch.expected);
  absl::Status status(row.error_class == Class::kUnknown
                          ? absl::StatusCode::kUnimplemented
                          : absl::StatusCode::kInvalidArgument,
                      message);
  status.SetPayload(kPayloadUrl, absl::Cord(row.name));
  return status;
}

std::string QuoteForError(absl::string_view text) {
  constexpr size_t kShown = 80;
  std::string quoted =
      absl::StrCat("\"", absl::CHexEscape(text.substr(0, kShown)), "\"");
  if (text.size() > kShown) {
    absl::StrAppend(&quoted, " and ", text.size() - kShown, " bytes more");
  }
  return quoted;
}

}  // namespace penstock
