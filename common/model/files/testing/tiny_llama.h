#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/model/files/model_file.h"
#include "common/model/files/testing/gguf_builder.h"

namespace penstock {

// A whole model small enough for a unit test: random weights of a sensible
// size, byte-level BPE over all bytes with a few merges, a ChatML template.
struct TinyLlamaOptions {
  uint64_t seed = 1;  // equal options give equal bytes
  int layers = 2;
  int hidden = 64;
  int heads = 4;
  int kv_heads = 2;
  int ffn = 128;
  int context_length = 512;
  TensorType embedding_type = TensorType::kQ8_0;
  // The layers' matrices take these in turn; norms are F32.
  std::vector<TensorType> matrix_types = {TensorType::kQ4_1};
  bool tied_head = true;
  // False: only the bytes that the merges need, for files of a few KiB.
  bool all_bytes = true;
};

// Tokens 0 "<|endoftext|>" (also unknown), 1 "<|im_start|>" (bos), 2
// "<|im_end|>" (eos) are control tokens, as in the SmolLM2 family; then one
// token a byte, then one a merge.
GgufDocument MakeTinyLlama(const TinyLlamaOptions& options = {});

// The same, opened: a ModelFile that owns its bytes in memory.
std::unique_ptr<ModelFile> OpenTinyLlama(const TinyLlamaOptions& options = {});

// Any encoded file as a ModelFile in memory.
absl::StatusOr<std::unique_ptr<ModelFile>> OpenModelBytes(
    std::vector<uint8_t> bytes);

}  // namespace penstock
