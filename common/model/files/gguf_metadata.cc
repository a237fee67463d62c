#include "common/model/files/gguf_metadata.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

// No known model comes near these; they bound memory and time.
constexpr uint64_t kMaxEntries = 65536;
constexpr int kMaxNesting = 4;
// From the format's specification.
constexpr size_t kMaxKeyBytes = 65535;
// Key of one character with its length, type, value of one byte.
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;

struct TypeTraits {
  absl::string_view name;
  uint64_t min_bytes;  // the size of a number; of others the least
};

constexpr TypeTraits kTypes[] = {
    {"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2}, {"u32", 4},
    {"i32", 4}, {"f32", 4}, {"bool", 1}, {"str", 8}, {"arr", 12},
    {"u64", 8}, {"i64", 8}, {"f64", 8},
};

const TypeTraits& TraitsOf(GgufType type) {
  return kTypes[static_cast<uint32_t>(type)];
}

// The integer behind any integer type; nothing for other types and for values
// over 63 bits.
std::optional<int64_t> AsInteger(GgufType type,
                                 absl::Span<const uint8_t> bytes) {
  switch (type) {
    case GgufType::kUint8:
      return LoadLittleEndian<uint8_t>(bytes);
    case GgufType::kInt8:
      return LoadLittleEndian<int8_t>(bytes);
    case GgufType::kUint16:
      return LoadLittleEndian<uint16_t>(bytes);
    case GgufType::kInt16:
      return LoadLittleEndian<int16_t>(bytes);
    case GgufType::kUint32:
      return LoadLittleEndian<uint32_t>(bytes);
    case GgufType::kInt32:
      return LoadLittleEndian<int32_t>(bytes);
    case GgufType::kInt64:
      return LoadLittleEndian<int64_t>(bytes);
    case GgufType::kUint64: {
      uint64_t value = LoadLittleEndian<uint64_t>(bytes);
      // Beyond every allowed range either way.
      return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
    }
    default:
      return std::nullopt;
  }
}

absl::string_view AsText(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads the entries of one file; see GgufMetadata::Read.
class EntryReader {
 public:
  EntryReader(GgufCursor& cursor, const ModelErrorMaker& errors)
      : cursor_(cursor), errors_(errors) {}

  absl::StatusOr<absl::string_view> Key() {
    ASSIGN_OR_RETURN(absl::string_view key, cursor_.String("metadata key"));
    bool printable = std::all_of(key.begin(), key.end(), absl::ascii_isgraph);
    if (key.empty() || key.size() > kMaxKeyBytes || !printable) {
      return errors_.Make(
          ModelError::kBadKey,
          {.field = "metadata key",
           .found = QuoteForError(key),
           .expected = absl::StrCat("1 to ", kMaxKeyBytes,
                                    " characters of printable ASCII")});
    }
    return key;
  }

  absl::StatusOr<GgufValue> Value(absl::string_view key) {
    GgufValue value;
    ASSIGN_OR_RETURN(value.type, Type(key));
    if (value.type == GgufType::kArray) {
      ASSIGN_OR_RETURN(value.element_type, Type(key));
      ASSIGN_OR_RETURN(value.count, Count(key, value.element_type));
      ASSIGN_OR_RETURN(value.bytes,
                       Elements(key, value.element_type, value.count, 1));
    } else if (value.type == GgufType::kString) {
      ASSIGN_OR_RETURN(absl::string_view text, cursor_.String(key));
      value.bytes = {reinterpret_cast<const uint8_t*>(text.data()),
                     text.size()};
    } else {
      ASSIGN_OR_RETURN(value.bytes, Elements(key, value.type, 1, 0));
    }
    return value;
  }

 private:
  absl::StatusOr<GgufType> Type(absl::string_view key) {
    ASSIGN_OR_RETURN(uint32_t type, cursor_.Number<uint32_t>(key));
    if (type >= std::size(kTypes)) {
      return errors_.Make(
          ModelError::kValueType,
          {.field = absl::StrCat(key, " type"),
           .found = absl::StrCat(type),
           .expected = absl::StrCat("0 to ", std::size(kTypes) - 1)});
    }
    return static_cast<GgufType>(type);
  }

  // An array's length, refused when the rest of the file cannot hold it.
  absl::StatusOr<uint64_t> Count(absl::string_view key, GgufType type) {
    ASSIGN_OR_RETURN(uint64_t count, cursor_.Number<uint64_t>(key));
    uint64_t most = cursor_.remaining() / TraitsOf(type).min_bytes;
    if (count > most) {
      return errors_.Make(
          ModelError::kArrayLength,
          {.field = absl::StrCat(key, " length"),
           .found =
               absl::StrCat(count, " elements of type ", GgufTypeName(type)),
           .expected = absl::StrCat("at most the ", most,
                                    " that are left in the file")});
    }
    return count;
  }

  // Walks over `count` elements, checking them, and returns their bytes.
  absl::StatusOr<absl::Span<const uint8_t>> Elements(absl::string_view key,
                                                     GgufType type,
                                                     uint64_t count,
                                                     int depth) {
    GgufCursor start = cursor_;
    switch (type) {
      case GgufType::kArray:
        RETURN_IF_ERROR(Arrays(key, count, depth));
        break;
      case GgufType::kString:
        for (uint64_t i = 0; i < count; ++i) {
          RETURN_IF_ERROR(cursor_.String(key).status());
        }
        break;
      case GgufType::kBool:
        RETURN_IF_ERROR(Bools(key, count));
        break;
      default:
        // Count bounded the product by the file's size.
        return cursor_.Bytes(count * TraitsOf(type).min_bytes, key);
    }
    return start.Bytes(cursor_.offset() - start.offset(), key);
  }

  absl::Status Arrays(absl::string_view key, uint64_t count, int depth) {
    if (depth >= kMaxNesting) {
      return errors_.Make(
          ModelError::kArrayNesting,
          {.field = std::string(key),
           .found = absl::StrCat("arrays nested more than ", depth, " deep"),
           .expected = absl::StrCat("at most ", kMaxNesting)});
    }
    for (uint64_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(GgufType type, Type(key));
      ASSIGN_OR_RETURN(uint64_t inner, Count(key, type));
      RETURN_IF_ERROR(Elements(key, type, inner, depth + 1).status());
    }
    return absl::OkStatus();
  }

  absl::Status Bools(absl::string_view key, uint64_t count) {
    ASSIGN_OR_RETURN(absl::Span<const uint8_t> bytes,
                     cursor_.Bytes(count, key));
    for (uint8_t byte : bytes) {
      if (byte <= 1) continue;
      return errors_.Make(ModelError::kBadBool, {.field = std::string(key),
                                                 .found = absl::StrCat(byte),
                                                 .expected = "0 or 1"});
    }
    return absl::OkStatus();
  }

  GgufCursor& cursor_;
  const ModelErrorMaker& errors_;
};

}  // namespace

absl::string_view GgufTypeName(GgufType type) { return TraitsOf(type).name; }

absl::StatusOr<GgufMetadata> GgufMetadata::Read(GgufCursor& cursor,
                                                uint64_t count,
                                                const ModelErrorMaker& errors) {
  uint64_t most = std::min(kMaxEntries, cursor.remaining() / kMinEntryBytes);
  if (count > most) {
    return errors.Make(ModelError::kMetadataCount,
                       {.field = "metadata count",
                        .found = absl::StrCat(count),
                        .expected = absl::StrCat("at most ", most,
                                                 " in a file of this size")});
  }
  GgufMetadata metadata(errors);
  EntryReader reader(cursor, errors);
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(absl::string_view key, reader.Key());
    ASSIGN_OR_RETURN(GgufValue value, reader.Value(key));
    if (!metadata.values_.emplace(key, value).second) {
      return errors.Make(ModelError::kDuplicateKey,
                         {.field = std::string(key),
                          .found = absl::StrCat("the key again as entry ", i),
                          .expected = "each key once"});
    }
  }
  return metadata;
}

const GgufValue* GgufMetadata::Find(absl::string_view key) const {
  auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

absl::StatusOr<GgufValue> GgufMetadata::Require(absl::string_view key) const {
  if (const GgufValue* value = Find(key)) return *value;
  return errors_.Make(ModelError::kMissingKey,
                      {.field = std::string(key),
                       .found = "no such key",
                       .expected = "it among the metadata"});
}

absl::StatusOr<GgufValue> GgufMetadata::RequireArray(
    absl::string_view key) const {
  ASSIGN_OR_RETURN(GgufValue value, Require(key));
  if (value.type != GgufType::kArray) return WrongType(key, value, "an array");
  return value;
}

absl::Status GgufMetadata::WrongType(absl::string_view key,
                                     const GgufValue& value,
                                     absl::string_view expected) const {
  std::string found(GgufTypeName(value.type));
  if (value.type == GgufType::kArray) {
    absl::StrAppend(&found, " of ", GgufTypeName(value.element_type));
  }
  return errors_.Make(ModelError::kKeyType,
                      {.field = absl::StrCat(key, " type"),
                       .found = found,
                       .expected = std::string(expected)});
}

absl::StatusOr<int64_t> GgufMetadata::Integer(absl::string_view key,
                                              IntegerRange range) const {
  ASSIGN_OR_RETURN(GgufValue value, Require(key));
  std::optional<int64_t> number = AsInteger(value.type, value.bytes);
  if (!number) return WrongType(key, value, "an integer");
  if (*number < range.low || *number > range.high) {
    return errors_.Make(
        ModelError::kValueRange,
        {.field = std::string(key),
         .found = absl::StrCat(*number),
         .expected = absl::StrCat(range.low, " to ", range.high)});
  }
  return *number;
}

absl::StatusOr<double> GgufMetadata::Float(absl::string_view key,
                                           FloatRange range) const {
  ASSIGN_OR_RETURN(GgufValue value, Require(key));
  double number;
  if (value.type == GgufType::kFloat32) {
    number = LoadLittleEndian<float>(value.bytes);
  } else if (value.type == GgufType::kFloat64) {
    number = LoadLittleEndian<double>(value.bytes);
  } else {
    return WrongType(key, value, "f32 or f64");
  }
  // Written so that a NaN fails.
  if (!(number >= range.low && number <= range.high)) {
    return errors_.Make(
        ModelError::kValueRange,
        {.field = std::string(key),
         .found = absl::StrCat(number),
         .expected = absl::StrCat(range.low, " to ", range.high)});
  }
  return number;
}

absl::StatusOr<bool> GgufMetadata::Bool(absl::string_view key) const {
  ASSIGN_OR_RETURN(GgufValue value, Require(key));
  if (value.type != GgufType::kBool) return WrongType(key, value, "bool");
  return value.bytes[0] != 0;
}

absl::StatusOr<absl::string_view> GgufMetadata::String(
    absl::string_view key) const {
  ASSIGN_OR_RETURN(GgufValue value, Require(key));
  if (value.type != GgufType::kString) return WrongType(key, value, "str");
  absl::string_view text = AsText(value.bytes);
  if (!IsUtf8(text)) {
    return errors_.Make(ModelError::kBadUtf8, {.field = std::string(key),
                                               .found = QuoteForError(text),
                                               .expected = "UTF-8"});
  }
  return text;
}

absl::StatusOr<std::vector<absl::string_view>> GgufMetadata::Strings(
    absl::string_view key) const {
  ASSIGN_OR_RETURN(GgufValue value, RequireArray(key));
  if (value.element_type != GgufType::kString) {
    return WrongType(key, value, "arr of str");
  }
  std::vector<absl::string_view> strings;
  strings.reserve(value.count);
  GgufCursor cursor(value.bytes, errors_);
  for (uint64_t i = 0; i < value.count; ++i) {
    ASSIGN_OR_RETURN(absl::string_view text, cursor.String(key));
    if (!IsUtf8(text)) {
      return errors_.Make(ModelError::kBadUtf8,
                          {.field = absl::StrCat(key, "[", i, "]"),
                           .found = QuoteForError(text),
                           .expected = "UTF-8"});
    }
    strings.push_back(text);
  }
  return strings;
}

absl::StatusOr<std::vector<int64_t>> GgufMetadata::Integers(
    absl::string_view key) const {
  ASSIGN_OR_RETURN(GgufValue value, RequireArray(key));
  uint64_t width = TraitsOf(value.element_type).min_bytes;
  std::vector<int64_t> numbers;
  if (width > 4) return WrongType(key, value, "arr of i32");
  numbers.reserve(value.count);
  for (uint64_t i = 0; i < value.count; ++i) {
    std::optional<int64_t> number =
        AsInteger(value.element_type, value.bytes.subspan(i * width, width));
    if (!number) return WrongType(key, value, "arr of i32");
    numbers.push_back(*number);
  }
  return numbers;
}

absl::StatusOr<std::vector<double>> GgufMetadata::Floats(
    absl::string_view key) const {
  ASSIGN_OR_RETURN(GgufValue value, RequireArray(key));
  if (value.element_type != GgufType::kFloat32) {
    return WrongType(key, value, "arr of f32");
  }
  std::vector<double> numbers;
  numbers.reserve(value.count);
  for (uint64_t i = 0; i < value.count; ++i) {
    float number;
    std::memcpy(&number, value.bytes.data() + i * sizeof(number),
                sizeof(number));
    numbers.push_back(number);
  }
  return numbers;
}

absl::StatusOr<uint64_t> GgufMetadata::ArrayLength(
    absl::string_view key) const {
  ASSIGN_OR_RETURN(GgufValue value, RequireArray(key));
  return value.count;
}

absl::StatusOr<int64_t> GgufMetadata::IntegerOr(absl::string_view key,
                                                IntegerRange range,
                                                int64_t absent) const {
  if (Find(key) == nullptr) return absent;
  return Integer(key, range);
}

absl::StatusOr<double> GgufMetadata::FloatOr(absl::string_view key,
                                             FloatRange range,
                                             double absent) const {
  if (Find(key) == nullptr) return absent;
  return Float(key, range);
}

absl::StatusOr<bool> GgufMetadata::BoolOr(absl::string_view key,
                                          bool absent) const {
  if (Find(key) == nullptr) return absent;
  return Bool(key);
}

absl::StatusOr<absl::string_view> GgufMetadata::StringOr(
    absl::string_view key, absl::string_view absent) const {
  if (Find(key) == nullptr) return absent;
  return String(key);
}

}  // namespace penstock
