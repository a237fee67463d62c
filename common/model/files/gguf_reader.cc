#include "common/model/files/gguf_reader.h"

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/model/files/gguf_cursor.h"
#include "common/model/files/tensor_type.h"

namespace penstock {
namespace {

constexpr absl::string_view kMagic = "GGUF";
constexpr uint32_t kMinVersion = 2;
constexpr uint32_t kMaxVersion = 3;
constexpr absl::string_view kAlignmentKey = "general.alignment";
constexpr int64_t kDefaultAlignment = 32;
// The least that the specification allows, and far more than any writer uses.
constexpr IntegerRange kAlignmentRange = {8, 1 << 20};
// No known model comes near it; it bounds memory.
constexpr uint64_t kMaxTensors = 65536;
constexpr uint32_t kMaxDimensions = 4;
constexpr size_t kMaxTensorNameBytes = 64;
// Name of one character with its length, dimension count, one dimension, type,
// offset.
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

// A tensor as the directory describes it; the bytes are found afterwards.
struct TensorEntry {
  absl::string_view name;
  std::vector<int64_t> shape;  // as TensorView's
  TensorType type = TensorType::kF32;
  uint64_t offset = 0;  // from the start of the data section
  uint64_t bytes = 0;
};

absl::StatusOr<uint32_t> ReadVersion(GgufCursor& cursor,
                                     const ModelErrorMaker& errors) {
  ASSIGN_OR_RETURN(absl::Span<const uint8_t> magic,
                   cursor.Bytes(kMagic.size(), "magic"));
  absl::string_view found(reinterpret_cast<const char*>(magic.data()),
                          magic.size());
  if (found != kMagic) {
    return errors.Make(ModelError::kBadMagic,
                       {.field = "magic",
                        .found = QuoteForError(found),
                        .expected = "\"GGUF\" (is it a GGUF model file?)"});
  }
  ASSIGN_OR_RETURN(uint32_t version, cursor.Number<uint32_t>("version"));
  if (version >= kMinVersion && version <= kMaxVersion) return version;
  bool big_endian = version != 0 && (version & 0xFFFF) == 0;
  return errors.Make(
      ModelError::kUnsupportedVersion,
      {.field = "version",
       .found = big_endian ? "a big-endian file" : absl::StrCat(version),
       .expected = absl::StrCat(kMinVersion, " or ", kMaxVersion,
                                ", little-endian (convert the model again)")});
}

// Reads the tensor directory entry by entry.
class DirectoryReader {
 public:
  DirectoryReader(GgufCursor& cursor, uint64_t alignment,
                  const ModelErrorMaker& errors)
      : cursor_(cursor), alignment_(alignment), errors_(errors) {}

  absl::StatusOr<TensorEntry> Entry() {
    TensorEntry entry;
    ASSIGN_OR_RETURN(entry.name, Name());
    field_ = absl::StrCat("tensor ", QuoteForError(entry.name));
    ASSIGN_OR_RETURN(entry.shape, Shape());
    ASSIGN_OR_RETURN(entry.type, Type());
    ASSIGN_OR_RETURN(entry.bytes, ByteSize(entry));
    ASSIGN_OR_RETURN(entry.offset, Offset());
    return entry;
  }

 private:
  absl::StatusOr<absl::string_view> Name() {
    ASSIGN_OR_RETURN(absl::string_view name, cursor_.String("tensor name"));
    if (name.empty() || name.size() > kMaxTensorNameBytes) {
      return errors_.Make(
          ModelError::kTensorName,
          {.field = "tensor name",
           .found = QuoteForError(name),
           .expected = absl::StrCat("1 to ", kMaxTensorNameBytes, " bytes")});
    }
    return name;
  }

  absl::StatusOr<std::vector<int64_t>> Shape() {
    ASSIGN_OR_RETURN(uint32_t count, cursor_.Number<uint32_t>(field_));
    if (count < 1 || count > kMaxDimensions) {
      return errors_.Make(ModelError::kDimensionCount,
                          {.field = absl::StrCat(field_, " dimensions"),
                           .found = absl::StrCat(count),
                           .expected = absl::StrCat("1 to ", kMaxDimensions)});
    }
    std::vector<int64_t> shape(count);
    for (uint32_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(uint64_t extent, cursor_.Number<uint64_t>(field_));
      if (extent == 0) {
        return errors_.Make(ModelError::kZeroDimension,
                            {.field = absl::StrCat(field_, " dimension ", i),
                             .found = "0",
                             .expected = "1 or more"});
      }
      if (extent > INT64_MAX) return Overflow(absl::StrCat(extent));
      shape[count - 1 - i] = static_cast<int64_t>(extent);
    }
    return shape;
  }

  absl::StatusOr<TensorType> Type() {
    ASSIGN_OR_RETURN(uint32_t id, cursor_.Number<uint32_t>(field_));
    if (auto type = TensorTypeOfGgufId(id)) return *type;
    std::vector<absl::string_view> known;
    for (int i = 0; i < kTensorTypeCount; ++i) {
      known.push_back(Traits(static_cast<TensorType>(i)).name);
    }
    return errors_.Make(
        ModelError::kTensorType,
        {.field = absl::StrCat(field_, " type"),
         .found = absl::StrCat(GgufTensorTypeName(id), " (", id, ")"),
         .expected = absl::StrCat("one of ", absl::StrJoin(known, ", "))});
  }

  absl::StatusOr<uint64_t> ByteSize(const TensorEntry& entry) {
    const TensorTypeTraits& traits = Traits(entry.type);
    if (entry.shape.back() % traits.block_elements != 0) {
      return errors_.Make(
          ModelError::kPartialBlock,
          {.field = absl::StrCat(field_, " row"),
           .found =
               absl::StrCat(entry.shape.back(), " elements of ", traits.name),
           .expected = absl::StrCat("a multiple of ", traits.block_elements)});
    }
    int64_t bytes = traits.block_bytes;
    bool overflow = __builtin_mul_overflow(
        bytes, entry.shape.back() / traits.block_elements, &bytes);
    for (size_t i = 0; i + 1 < entry.shape.size(); ++i) {
      overflow |= __builtin_mul_overflow(bytes, entry.shape[i], &bytes);
    }
    if (overflow) return Overflow(absl::StrJoin(entry.shape, " x "));
    return static_cast<uint64_t>(bytes);
  }

  absl::StatusOr<uint64_t> Offset() {
    ASSIGN_OR_RETURN(uint64_t offset, cursor_.Number<uint64_t>(field_));
    if (offset % alignment_ != 0) {
      return errors_.Make(
          ModelError::kTensorAlignment,
          {.field = absl::StrCat(field_, " offset"),
           .found = absl::StrCat(offset),
           .expected = absl::StrCat("a multiple of ", alignment_)});
    }
    return offset;
  }

  absl::Status Overflow(std::string found) const {
    return errors_.Make(ModelError::kShapeOverflow,
                        {.field = absl::StrCat(field_, " shape"),
                         .found = std::move(found),
                         .expected = "a byte size under 2^63"});
  }

  GgufCursor& cursor_;
  const uint64_t alignment_;
  const ModelErrorMaker& errors_;
  std::string field_;
};

absl::StatusOr<uint64_t> ReadAlignment(const GgufMetadata& metadata,
                                       const ModelErrorMaker& errors) {
  if (metadata.Find(kAlignmentKey) == nullptr) return kDefaultAlignment;
  ASSIGN_OR_RETURN(int64_t alignment,
                   metadata.Integer(kAlignmentKey, {INT64_MIN, INT64_MAX}));
  if (alignment < kAlignmentRange.low || alignment > kAlignmentRange.high ||
      !std::has_single_bit(static_cast<uint64_t>(alignment))) {
    return errors.Make(
        ModelError::kAlignment,
        {.field = std::string(kAlignmentKey),
         .found = absl::StrCat(alignment),
         .expected = absl::StrCat("a power of two from ", kAlignmentRange.low,
                                  " to ", kAlignmentRange.high)});
  }
  return alignment;
}

absl::StatusOr<std::vector<TensorEntry>> ReadDirectory(
    GgufCursor& cursor, uint64_t count, uint64_t alignment,
    const ModelErrorMaker& errors) {
  uint64_t most = std::min(kMaxTensors, cursor.remaining() / kMinTensorBytes);
  if (count > most) {
    return errors.Make(ModelError::kTensorCount,
                       {.field = "tensor count",
                        .found = absl::StrCat(count),
                        .expected = absl::StrCat("at most ", most,
                                                 " in a file of this size")});
  }
  std::vector<TensorEntry> entries;
  std::set<absl::string_view> names;
  DirectoryReader reader(cursor, alignment, errors);
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(TensorEntry entry, reader.Entry());
    if (!names.insert(entry.name).second) {
      return errors.Make(
          ModelError::kDuplicateTensor,
          {.field = absl::StrCat("tensor ", QuoteForError(entry.name)),
           .found = absl::StrCat("the name again as tensor ", i),
           .expected = "each name once"});
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Sorts by offset, which the check for overlaps needs.
absl::Status CheckPlacement(std::vector<TensorEntry>& entries,
                            uint64_t data_bytes,
                            const ModelErrorMaker& errors) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const TensorEntry& a, const TensorEntry& b) {
                     return a.offset < b.offset;
                   });
  const TensorEntry* previous = nullptr;
  for (const TensorEntry& entry : entries) {
    std::string field = absl::StrCat("tensor ", QuoteForError(entry.name));
    if (entry.offset > data_bytes || entry.bytes > data_bytes - entry.offset) {
      return errors.Make(ModelError::kTensorOutOfFile,
                         {.field = field,
                          .found = absl::StrCat(
                              entry.bytes, " bytes at offset ", entry.offset),
                          .expected = absl::StrCat(
                              "within the ", data_bytes,
                              " data bytes of the file (is it cut short?)")});
    }
    if (previous != nullptr &&
        entry.offset < previous->offset + previous->bytes) {
      return errors.Make(
          ModelError::kTensorOverlap,
          {.field = field,
           .found = absl::StrCat("offset ", entry.offset, " inside ",
                                 QuoteForError(previous->name)),
           .expected = absl::StrCat(
               "offset ", previous->offset + previous->bytes, " or more")});
    }
    previous = &entry;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GgufReader> GgufReader::Parse(absl::Span<const uint8_t> file,
                                             std::string path) {
  ModelErrorMaker errors(std::move(path));
  GgufCursor cursor(file, errors);
  ASSIGN_OR_RETURN(uint32_t version, ReadVersion(cursor, errors));
  ASSIGN_OR_RETURN(uint64_t tensor_count,
                   cursor.Number<uint64_t>("tensor count"));
  ASSIGN_OR_RETURN(uint64_t metadata_count,
                   cursor.Number<uint64_t>("metadata count"));
  ASSIGN_OR_RETURN(GgufMetadata metadata,
                   GgufMetadata::Read(cursor, metadata_count, errors));
  ASSIGN_OR_RETURN(uint64_t alignment, ReadAlignment(metadata, errors));
  ASSIGN_OR_RETURN(std::vector<TensorEntry> entries,
                   ReadDirectory(cursor, tensor_count, alignment, errors));

  uint64_t padding = (alignment - cursor.offset() % alignment) % alignment;
  uint64_t data_start =
      std::min<uint64_t>(cursor.offset() + padding, file.size());
  absl::Span<const uint8_t> data = file.subspan(data_start);
  RETURN_IF_ERROR(CheckPlacement(entries, data.size(), errors));

  TensorMap tensors;
  for (TensorEntry& entry : entries) {
    TensorView view{.name = std::string(entry.name),
                    .type = entry.type,
                    .shape = std::move(entry.shape),
                    .data = data.subspan(entry.offset, entry.bytes)};
    tensors.emplace(std::string(entry.name), std::move(view));
  }
  return GgufReader(version, std::move(errors), std::move(metadata),
                    std::move(tensors));
}

const TensorView* GgufReader::FindTensor(absl::string_view name) const {
  auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

}  // namespace penstock
