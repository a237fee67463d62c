#pragma once

#include <string>

#include "common/base/id.h"

namespace penstock {

// How rotary embedding pairs the dimensions of a head.
enum class RopePairing {
  kInterleaved,  // (2i, 2i+1), as GGUF stores the Llama family
  kHalves,       // (i, i + dim/2)
};

struct RopeSpec {
  float base = 10000.0f;
  int dimensions = 0;  // leading dimensions of a head that rotate
  RopePairing pairing = RopePairing::kInterleaved;
};

// A model family as data: the one forward pass reads this and nothing else
// about the architecture. New families add options here, never a second pass.
// Immutable once loaded.
struct ModelSpec {
  std::string architecture;  // "llama"
  std::string name;          // general.name, or the file's stem
  // Fingerprint of the weights file (XXH3-64 over all of its bytes): the model
  // revision of block hashes and of peers that may exchange KV.
  ContentId content;

  int vocab_size = 0;
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int ffn = 0;
  int context_length = 0;
  float norm_epsilon = 1e-5f;
  RopeSpec rope;
  bool tied_head = false;  // the output head is the token embedding

  int kv_width() const { return kv_heads * head_dim; }
  int q_width() const { return heads * head_dim; }
};

}  // namespace penstock
