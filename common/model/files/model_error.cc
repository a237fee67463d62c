#include "common/model/files/model_error.h"

#include <iterator>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr absl::string_view kPayloadUrl = "penstock/model-error";

enum class Where { kBoth, kGguf, kFolder };
enum class Class { kWrong, kUnknown };

struct Row {
  ModelError error;
  absl::string_view name;
  Where where = Where::kBoth;
  Class error_class = Class::kWrong;
};

constexpr Row kRows[] = {
    {ModelError::kBadMagic, "bad_magic", Where::kGguf},
    {ModelError::kUnsupportedVersion, "unsupported_version", Where::kGguf,
     Class::kUnknown},
    {ModelError::kTruncated, "truncated"},
    {ModelError::kMetadataCount, "metadata_count", Where::kGguf},
    {ModelError::kTensorCount, "tensor_count"},
    {ModelError::kBadKey, "bad_key", Where::kGguf},
    {ModelError::kDuplicateKey, "duplicate_key"},
    {ModelError::kValueType, "value_type", Where::kGguf},
    {ModelError::kStringLength, "string_length", Where::kGguf},
    {ModelError::kArrayLength, "array_length", Where::kGguf},
    {ModelError::kArrayNesting, "array_nesting", Where::kGguf},
    {ModelError::kBadBool, "bad_bool", Where::kGguf},
    {ModelError::kAlignment, "alignment", Where::kGguf},
    {ModelError::kTensorName, "tensor_name"},
    {ModelError::kDuplicateTensor, "duplicate_tensor"},
    {ModelError::kDimensionCount, "dimension_count"},
    {ModelError::kZeroDimension, "zero_dimension"},
    {ModelError::kShapeOverflow, "shape_overflow"},
    {ModelError::kTensorType, "tensor_type", Where::kBoth, Class::kUnknown},
    {ModelError::kPartialBlock, "partial_block", Where::kGguf},
    {ModelError::kTensorAlignment, "tensor_alignment", Where::kGguf},
    {ModelError::kTensorOutOfFile, "tensor_out_of_file"},
    {ModelError::kTensorOverlap, "tensor_overlap"},
    {ModelError::kSplit, "split", Where::kGguf},
    {ModelError::kJson, "json", Where::kFolder},
    {ModelError::kHeaderLength, "header_length", Where::kFolder},
    {ModelError::kTensorFields, "tensor_fields", Where::kFolder},
    {ModelError::kTensorBytes, "tensor_bytes", Where::kFolder},
    {ModelError::kTensorGap, "tensor_gap", Where::kFolder},
    {ModelError::kShardName, "shard_name", Where::kFolder},
    {ModelError::kShardMap, "shard_map", Where::kFolder},
    {ModelError::kMissingKey, "missing_key"},
    {ModelError::kKeyType, "key_type"},
    {ModelError::kValueRange, "value_range"},
    {ModelError::kBadUtf8, "bad_utf8", Where::kGguf},
    {ModelError::kArchitecture, "architecture", Where::kBoth, Class::kUnknown},
    {ModelError::kHeadCount, "head_count"},
    {ModelError::kExpertCount, "expert_count"},
    {ModelError::kLatentWidth, "latent_width", Where::kGguf},
    {ModelError::kRopeDimensions, "rope_dimensions"},
    {ModelError::kRopeScaling, "rope_scaling", Where::kBoth, Class::kUnknown},
    {ModelError::kMissingTensor, "missing_tensor"},
    {ModelError::kTensorShape, "tensor_shape"},
    {ModelError::kUnexpectedTensor, "unexpected_tensor", Where::kBoth,
     Class::kUnknown},
    {ModelError::kTokenizerModel, "tokenizer_model", Where::kGguf,
     Class::kUnknown},
    {ModelError::kVocabularySize, "vocabulary_size", Where::kGguf},
    {ModelError::kTokenKindCount, "token_kind_count", Where::kGguf},
    {ModelError::kTokenKind, "token_kind", Where::kGguf},
    {ModelError::kEmptyToken, "empty_token", Where::kGguf},
    {ModelError::kDuplicateToken, "duplicate_token", Where::kGguf},
    {ModelError::kMergeSyntax, "merge_syntax", Where::kGguf},
    {ModelError::kMergeToken, "merge_token", Where::kGguf},
    {ModelError::kDuplicateMerge, "duplicate_merge", Where::kGguf},
    {ModelError::kTokenScores, "token_scores", Where::kGguf},
    {ModelError::kTokenId, "token_id"},
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
static_assert(static_cast<size_t>(ModelError::kTokenId) + 1 == kErrorCount);

const Row& RowOf(ModelError error) { return kRows[static_cast<size_t>(error)]; }

}  // namespace

std::vector<ModelError> ModelErrorsOf(ModelFormat format) {
  const Where where =
      format == ModelFormat::kGguf ? Where::kGguf : Where::kFolder;
  std::vector<ModelError> errors;
  for (const Row& row : kRows) {
    if (row.where == Where::kBoth || row.where == where) {
      errors.push_back(row.error);
    }
  }
  return errors;
}

absl::string_view ModelErrorName(ModelError error) { return RowOf(error).name; }

std::optional<ModelError> ModelErrorOf(const absl::Status& status) {
  absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  if (!payload) return std::nullopt;
  std::string name(*payload);
  for (const Row& row : kRows) {
    if (row.name == name) return row.error;
  }
  return std::nullopt;
}

absl::Status ModelErrorMaker::Make(ModelError error,
                                   const ModelMismatch& mismatch) const {
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
