#include "common/model/files/testing/safetensors_builder.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/model/files/testing/gguf_builder.h"
#include "common/model/files/testing/tensor_encoding.h"

namespace penstock {

SafetensorsDocument::Tensor* SafetensorsDocument::Find(
    const std::string& name) {
  for (Tensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

void SafetensorsDocument::Add(std::string name, TensorType type,
                              std::vector<uint64_t> shape,
                              absl::Span<const float> values) {
  tensors.push_back({.name = std::move(name),
                     .dtype = std::string(Traits(type).name),
                     .shape = std::move(shape),
                     .data = EncodeTensor(type, values)});
}

std::vector<uint8_t> SafetensorsDocument::Encode() const {
  std::string header = absl::StrCat("{", header_start), data;
  const char* separator = "";
  for (const Tensor& tensor : tensors) {
    const uint64_t begin = tensor.begin.value_or(data.size());
    data += tensor.data;
    const uint64_t end = tensor.end.value_or(data.size());
    absl::StrAppend(&header, separator, "\"", absl::CEscape(tensor.name),
                    "\":{\"dtype\":\"", tensor.dtype, "\",\"shape\":[",
                    absl::StrJoin(tensor.shape, ","), "],\"data_offsets\":[",
                    begin, ",", end, "]}");
    separator = ",";
  }
  header += "}";
  const std::string length =
      GgufNumber(header_length.value_or(uint64_t{header.size()}));
  const std::string file = length + header + data + tail;
  return {file.begin(), file.end()};
}

}  // namespace penstock
