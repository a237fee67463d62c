#include "tests/contract/test_models.h"

#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/model/files/testing/tiny_llama.h"

namespace penstock {

const ModelFile& RealModel() {
  static const ModelFile* model = [] {
    auto opened =
        OpenModelFile(PENSTOCK_MODELS "/SmolLM2-135M-Instruct.Q4_1.gguf");
    CHECK(opened.ok()) << opened.status().ToString();
    return opened->release();
  }();
  return *model;
}

const ModelFile& TinyModel() {
  static const ModelFile* model =
      OpenTinyLlama({.hidden = 128, .ffn = 256, .context_length = 1024})
          .release();
  return *model;
}

const ModelFile& TinyModelOfAllTypes() {
  static const ModelFile* model =
      OpenTinyLlama({.seed = 2,
                     .layers = 3,
                     .hidden = 192,
                     .heads = 6,
                     .kv_heads = 2,
                     .ffn = 160,
                     .context_length = 1024,
                     .embedding_type = TensorType::kF16,
                     .matrix_types = {TensorType::kQ8_0, TensorType::kQ4_0,
                                      TensorType::kQ4_1, TensorType::kF32,
                                      TensorType::kBF16, TensorType::kF16},
                     .tied_head = false})
          .release();
  return *model;
}

}  // namespace penstock
