#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/files/gguf_metadata.h"
#include "common/model/files/tensor_type.h"

namespace penstock {

// A GGUF file as data, for tests: built, edited, then encoded. Nothing is
// checked, so that it can also spell what no writer would. A value type.
struct GgufDocument {
  struct Entry {
    std::string key;
    uint32_t type = 0;
    std::string value;  // as stored, without the type
  };
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dimensions;  // innermost first, as stored
    uint32_t type = 0;
    std::string data;
    // What the directory says; by default where `data` really lies.
    std::optional<uint64_t> offset = std::nullopt;
  };

  std::string magic = "GGUF";
  uint32_t version = 3;
  // What the header says; by default the real numbers.
  std::optional<uint64_t> tensor_count;
  std::optional<uint64_t> metadata_count;
  uint64_t alignment = 32;  // what tensors are laid out by
  std::vector<Entry> metadata;
  std::vector<Tensor> tensors;

  // Null when there is none.
  Entry* FindEntry(absl::string_view key);
  Tensor* FindTensor(absl::string_view name);

  // Replaces the entry of the same key, or adds it at the end.
  void Set(Entry entry);
  void Remove(absl::string_view key);

  std::vector<uint8_t> Encode() const;
};

// The bytes of a number as GGUF stores it.
template <typename T>
std::string GgufNumber(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(T));
}
// A length and the characters.
std::string GgufString(absl::string_view text);
// Element type, count and already stored elements.
std::string GgufArray(GgufType type, uint64_t count,
                      absl::string_view elements);

GgufDocument::Entry Uint32Entry(absl::string_view key, uint32_t value);
GgufDocument::Entry Float32Entry(absl::string_view key, float value);
GgufDocument::Entry BoolEntry(absl::string_view key, bool value);
GgufDocument::Entry StringEntry(absl::string_view key, absl::string_view text);
GgufDocument::Entry StringsEntry(absl::string_view key,
                                 const std::vector<std::string>& strings);
GgufDocument::Entry Int32sEntry(absl::string_view key,
                                const std::vector<int32_t>& values);

// What StringsEntry and Int32sEntry were given; empty when the entry is not
// such an array, or not a whole one.
std::vector<std::string> StringsOf(const GgufDocument::Entry& entry);
std::vector<int32_t> Int32sOf(const GgufDocument::Entry& entry);

}  // namespace penstock
