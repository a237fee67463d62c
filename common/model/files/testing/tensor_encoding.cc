#include "common/model/files/testing/tensor_encoding.h"

#include <cstdint>

#include "common/model/files/quantizer.h"

namespace penstock {

std::string EncodeTensor(TensorType type, absl::Span<const float> values) {
  const TensorTypeTraits& traits = Traits(type);
  std::string out(values.size() / traits.block_elements * traits.block_bytes,
                  '\0');
  QuantizeRow(type, values,
              {reinterpret_cast<uint8_t*>(out.data()), out.size()});
  return out;
}

}  // namespace penstock
