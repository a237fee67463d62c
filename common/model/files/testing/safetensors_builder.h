#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/model/files/tensor_type.h"

namespace penstock {

// A safetensors file as data, for tests: built, edited, then encoded. Nothing
// is checked, so that it can also spell what no writer would. A value type.
struct SafetensorsDocument {
  struct Tensor {
    std::string name;
    std::string dtype;
    std::vector<uint64_t> shape;
    std::string data;
    // What the header says; by default where `data` really lies.
    std::optional<uint64_t> begin = std::nullopt;
    std::optional<uint64_t> end = std::nullopt;
  };

  std::vector<Tensor> tensors;
  // JSON text put before the tensors' entries, such as "\"x\":{},".
  std::string header_start;
  std::optional<uint64_t> header_length;
  std::string tail;  // bytes after the last tensor

  // Null when there is none.
  Tensor* Find(const std::string& name);
  // The values stored as F32, F16 or BF16.
  void Add(std::string name, TensorType type, std::vector<uint64_t> shape,
           absl::Span<const float> values);

  std::vector<uint8_t> Encode() const;
};

}  // namespace penstock
