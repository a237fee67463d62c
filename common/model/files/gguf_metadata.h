#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/files/gguf_cursor.h"
#include "common/model/files/model_error.h"

namespace penstock {

// Types of metadata values, by their number on disk.
enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// "u32", "str", "arr", ...
absl::string_view GgufTypeName(GgufType type);

// One value, checked to lie within the file but not yet decoded.
struct GgufValue {
  GgufType type = GgufType::kUint8;
  GgufType element_type = GgufType::kUint8;  // of an array
  uint64_t count = 1;                        // elements of an array
  // The number as stored, the characters of a string (without its length), or
  // all elements of an array as stored (strings with their lengths).
  absl::Span<const uint8_t> bytes;
};

// An inclusive range.
struct IntegerRange {
  int64_t low = 0;
  int64_t high = INT64_MAX;
};
struct FloatRange {
  double low = 0;
  double high = 0;
};

// The key-value section of a GGUF file: typed reads that say what is wrong.
// Holds views into the file's bytes, which must outlive it. Immutable.
class GgufMetadata {
 public:
  // Reads `count` entries. Bounded: entries cost memory only once they are
  // read, and arrays stay where they are in the file.
  static absl::StatusOr<GgufMetadata> Read(GgufCursor& cursor, uint64_t count,
                                           const ModelErrorMaker& errors);

  // Null when the file has no such key.
  const GgufValue* Find(absl::string_view key) const;
  size_t size() const { return values_.size(); }

  // Typed reads. kMissingKey when absent; kKeyType; integers of any width
  // and sign are taken, kValueRange outside `range`; text is UTF-8 (kBadUtf8).
  absl::StatusOr<int64_t> Integer(absl::string_view key,
                                  IntegerRange range) const;
  absl::StatusOr<double> Float(absl::string_view key, FloatRange range) const;
  absl::StatusOr<bool> Bool(absl::string_view key) const;
  absl::StatusOr<absl::string_view> String(absl::string_view key) const;
  // Views into the file: 16 bytes of memory for at least 8 of the file.
  absl::StatusOr<std::vector<absl::string_view>> Strings(
      absl::string_view key) const;
  // An array of integers of at most 32 bits.
  absl::StatusOr<std::vector<int64_t>> Integers(absl::string_view key) const;
  // An array of f32.
  absl::StatusOr<std::vector<double>> Floats(absl::string_view key) const;
  // Length of an array, without reading it.
  absl::StatusOr<uint64_t> ArrayLength(absl::string_view key) const;

  // The same, with a value for an absent key.
  absl::StatusOr<int64_t> IntegerOr(absl::string_view key, IntegerRange range,
                                    int64_t absent) const;
  absl::StatusOr<double> FloatOr(absl::string_view key, FloatRange range,
                                 double absent) const;
  absl::StatusOr<bool> BoolOr(absl::string_view key, bool absent) const;
  absl::StatusOr<absl::string_view> StringOr(absl::string_view key,
                                             absl::string_view absent) const;

 private:
  explicit GgufMetadata(const ModelErrorMaker& errors) : errors_(errors) {}

  absl::StatusOr<GgufValue> Require(absl::string_view key) const;
  absl::StatusOr<GgufValue> RequireArray(absl::string_view key) const;
  absl::Status WrongType(absl::string_view key, const GgufValue& value,
                         absl::string_view expected) const;

  ModelErrorMaker errors_;
  std::map<absl::string_view, GgufValue> values_;
};

}  // namespace penstock
