#include "common/model/files/testing/gguf_builder.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

uint32_t IdOf(GgufType type) { return static_cast<uint32_t>(type); }

// Takes a number off the front; false when too few bytes are left.
template <typename T>
bool Take(absl::string_view& bytes, T& value) {
  if (bytes.size() < sizeof(T)) return false;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return true;
}

// Takes off the head of an array of this type.
bool TakeArrayHead(absl::string_view& bytes, GgufType type, uint64_t& count) {
  uint32_t id;
  return Take(bytes, id) && id == IdOf(type) && Take(bytes, count);
}

}  // namespace

GgufDocument::Entry* GgufDocument::FindEntry(absl::string_view key) {
  auto it = std::find_if(metadata.begin(), metadata.end(),
                         [&](const Entry& entry) { return entry.key == key; });
  return it == metadata.end() ? nullptr : &*it;
}

GgufDocument::Tensor* GgufDocument::FindTensor(absl::string_view name) {
  auto it = std::find_if(tensors.begin(), tensors.end(),
                         [&](const Tensor& t) { return t.name == name; });
  return it == tensors.end() ? nullptr : &*it;
}

void GgufDocument::Set(Entry entry) {
  if (Entry* old = FindEntry(entry.key)) {
    *old = std::move(entry);
  } else {
    metadata.push_back(std::move(entry));
  }
}

void GgufDocument::Remove(absl::string_view key) {
  std::erase_if(metadata, [&](const Entry& entry) { return entry.key == key; });
}

std::vector<uint8_t> GgufDocument::Encode() const {
  std::string out = magic;
  out += GgufNumber(version);
  out += GgufNumber(tensor_count.value_or(tensors.size()));
  out += GgufNumber(metadata_count.value_or(metadata.size()));
  for (const Entry& entry : metadata) {
    out += GgufString(entry.key);
    out += GgufNumber(entry.type);
    out += entry.value;
  }
  auto padded = [&](uint64_t size) {
    return (size + alignment - 1) / alignment * alignment;
  };
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    out += GgufString(tensor.name);
    out += GgufNumber(static_cast<uint32_t>(tensor.dimensions.size()));
    for (uint64_t dimension : tensor.dimensions) out += GgufNumber(dimension);
    out += GgufNumber(tensor.type);
    out += GgufNumber(tensor.offset.value_or(offset));
    offset += padded(tensor.data.size());
  }
  for (const Tensor& tensor : tensors) {
    out.resize(padded(out.size()));
    out += tensor.data;
  }
  return {out.begin(), out.end()};
}

std::string GgufString(absl::string_view text) {
  std::string bytes = GgufNumber<uint64_t>(text.size());
  bytes.append(text.data(), text.size());
  return bytes;
}

std::string GgufArray(GgufType type, uint64_t count,
                      absl::string_view elements) {
  std::string bytes = GgufNumber(IdOf(type)) + GgufNumber(count);
  bytes.append(elements.data(), elements.size());
  return bytes;
}

GgufDocument::Entry Uint32Entry(absl::string_view key, uint32_t value) {
  return {std::string(key), IdOf(GgufType::kUint32), GgufNumber(value)};
}

GgufDocument::Entry Float32Entry(absl::string_view key, float value) {
  return {std::string(key), IdOf(GgufType::kFloat32), GgufNumber(value)};
}

GgufDocument::Entry BoolEntry(absl::string_view key, bool value) {
  return {std::string(key), IdOf(GgufType::kBool),
          GgufNumber<uint8_t>(value ? 1 : 0)};
}

GgufDocument::Entry StringEntry(absl::string_view key, absl::string_view text) {
  return {std::string(key), IdOf(GgufType::kString), GgufString(text)};
}

GgufDocument::Entry StringsEntry(absl::string_view key,
                                 const std::vector<std::string>& strings) {
  std::string elements;
  for (const std::string& text : strings) elements += GgufString(text);
  return {std::string(key), IdOf(GgufType::kArray),
          GgufArray(GgufType::kString, strings.size(), elements)};
}

GgufDocument::Entry Int32sEntry(absl::string_view key,
                                const std::vector<int32_t>& values) {
  std::string elements;
  for (int32_t value : values) elements += GgufNumber(value);
  return {std::string(key), IdOf(GgufType::kArray),
          GgufArray(GgufType::kInt32, values.size(), elements)};
}

std::vector<std::string> StringsOf(const GgufDocument::Entry& entry) {
  absl::string_view bytes = entry.value;
  std::vector<std::string> strings;
  uint64_t count;
  if (!TakeArrayHead(bytes, GgufType::kString, count)) return {};
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t length;
    if (!Take(bytes, length) || length > bytes.size()) return {};
    strings.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  return strings;
}

std::vector<int32_t> Int32sOf(const GgufDocument::Entry& entry) {
  absl::string_view bytes = entry.value;
  std::vector<int32_t> values;
  uint64_t count;
  if (!TakeArrayHead(bytes, GgufType::kInt32, count)) return {};
  for (uint64_t i = 0; i < count; ++i) {
    int32_t value;
    if (!Take(bytes, value)) return {};
    values.push_back(value);
  }
  return values;
}

}  // namespace penstock
