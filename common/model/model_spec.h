#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/id.h"

namespace penstock {

// How rotary embedding pairs the dimensions of a head.
enum class RopePairing {
  kInterleaved,  // (2i, 2i+1), as GGUF stores the Llama family
  kHalves,       // (i, i + dim/2)
};

// How the rotation speeds of a longer context come from the trained ones.
enum class RopeScaling {
  kNone,
  kLinear,      // every speed divided by `factor`
  kDynamicNtk,  // the base grows with the context over `original_context`
  kYarn,        // Peng et al. 2023, "YaRN"
  kLlama3,      // Llama 3.1: slow pairs divided, fast ones kept
  kDivisors,    // a divisor for each pair (LongRoPE; GGUF's rope_freqs)
};

struct RopeSpec {
  float base = 10000.0f;
  int dimensions = 0;  // leading dimensions of a head that rotate
  RopePairing pairing = RopePairing::kInterleaved;

  RopeScaling scaling = RopeScaling::kNone;
  float factor = 1.0f;
  int original_context = 0;  // positions that the model was trained with
  float low_frequency_factor = 1.0f;   // kLlama3
  float high_frequency_factor = 4.0f;  // kLlama3
  float beta_fast = 32.0f;             // kYarn: rotations in the context
  float beta_slow = 1.0f;              // kYarn
  std::vector<float> divisors = {};         // kDivisors: [dimensions / 2]
  // Cosines and sines are multiplied by this (YaRN's and LongRoPE's attention
  // factor), already worked out.
  float magnitude = 1.0f;
};

// Radians a position for each pair [dimensions / 2], after scaling. The only
// place where RopeScaling is read; the context length enters kDynamicNtk.
std::vector<double> RopeSpeeds(const RopeSpec& rope, int context_length);

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434). K and V of a
// token are one latent vector and one rotated part, shared by all heads: the
// cache holds those, and each head's own matrices are applied to queries and
// outputs instead.
struct LatentAttentionSpec {
  int query_rank = 0;  // 0: queries come from the hidden state directly
  int latent = 0;      // width of the shared latent (kv_lora_rank)
  int plain_dim = 0;   // of a head's query and key, not rotated
  int rotated_dim = 0;
  int value_dim = 0;  // of a head's value

  int query_dim() const { return plain_dim + rotated_dim; }
};

enum class ExpertGating { kSoftmax, kSigmoid };

// How strong a group of experts is taken to be when groups are chosen first.
enum class ExpertGroupScore { kMax, kSumOfBestTwo };

// A mixture of experts in place of the feed-forward.
struct ExpertSpec {
  int count = 0;
  int used = 0;        // experts for each token
  int ffn = 0;         // inner width of an expert
  int shared_ffn = 0;  // inner width of what every token passes; 0: nothing
  ExpertGating gating = ExpertGating::kSoftmax;
  // The chosen experts' weights are divided by their sum (Mixtral's softmax
  // over the chosen ones is this after a softmax over all).
  bool normalize = false;
  float scale = 1.0f;  // of the chosen experts' weights
  int groups = 1;
  int groups_used = 1;
  ExpertGroupScore group_score = ExpertGroupScore::kMax;
};

enum class Activation { kSilu, kGeluTanh };

// What one layer does differently from its neighbours.
struct LayerSpec {
  int rope = 0;    // index into ModelSpec::ropes; -1: positions do not enter
  int window = 0;  // a row sees the last `window` positions, its own included;
                   // 0: all
  bool experts = false;  // a mixture instead of the dense feed-forward
};

enum class QkNorm {
  kNone,
  kPerHead,  // over each head's dimensions; gain [head_dim]
  kWhole,    // over all heads together; gain [q_width] and [kv_width]
};

// A model family as data: the one forward pass reads this and nothing else
// about the architecture. New families add options here, never a second pass.
// Which optional tensors a layer has (biases, norms) is told by the weights.
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
  // Heads and widths of what the cache holds. With latent attention: one head
  // whose key is the latent and the rotated part, and whose value the latent.
  int kv_heads = 0;
  int head_dim = 0;   // of keys
  int value_dim = 0;  // of values
  int ffn = 0;        // of dense layers
  int context_length = 0;
  float norm_epsilon = 1e-5f;
  // Added to every stored norm gain (Gemma in Hugging Face folders: 1).
  float norm_offset = 0.0f;
  std::vector<RopeSpec> ropes;         // one or more
  std::vector<LayerSpec> layer_specs;  // [layers]
  bool tied_head = false;              // the output head is the token embedding

  Activation activation = Activation::kSilu;
  QkNorm qk_norm = QkNorm::kNone;  // before the rotation
  float score_scale = 0.0f;        // of q.k before the softmax; set by readers
  float score_cap = 0.0f;          // cap * tanh(score / cap); 0: none
  float logit_cap = 0.0f;
  float embedding_scale = 1.0f;
  float residual_scale = 1.0f;  // of what a block adds to the residual stream
  float logit_scale = 1.0f;
  std::optional<LatentAttentionSpec> latent;
  std::optional<ExpertSpec> experts;

  int kv_width() const { return kv_heads * head_dim; }
  int value_width() const { return kv_heads * value_dim; }
  int q_width() const { return heads * head_dim; }
  // Of what the output projection reads.
  int attended_width() const {
    return heads * (latent.has_value() ? latent->value_dim : value_dim);
  }
};

}  // namespace penstock
