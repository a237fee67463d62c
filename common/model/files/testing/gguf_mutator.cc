#include "common/model/files/testing/gguf_mutator.h"

#include "common/base/check.h"
#include "common/model/files/testing/byte_edits.h"
#include "common/model/files/testing/gguf_edits.h"
#include "common/model/files/testing/tiny_llama.h"

namespace penstock {
namespace {

std::vector<GgufDocument> MakeSeeds() {
  using enum TensorType;
  std::vector<GgufDocument> seeds = {
      MakeTinyLlama({.layers = 1,
                     .hidden = 32,
                     .heads = 2,
                     .kv_heads = 1,
                     .ffn = 32,
                     .embedding_type = kQ4_0,
                     .matrix_types = {kQ4_1, kQ8_0, kQ4_0, kQ5_0, kQ5_1},
                     .all_bytes = false}),
      MakeTinyLlama({.seed = 2,
                     .layers = 2,
                     .hidden = 16,
                     .heads = 4,
                     .kv_heads = 4,
                     .ffn = 8,
                     .embedding_type = kF16,
                     .matrix_types = {kF16, kBF16},
                     .tied_head = false,
                     .all_bytes = false}),
      MakeTinyLlama({.seed = 3,
                     .layers = 1,
                     .hidden = 8,
                     .heads = 2,
                     .kv_heads = 2,
                     .ffn = 4,
                     .embedding_type = kF32,
                     .matrix_types = {kF32, kBF16},
                     .all_bytes = true}),
  };
  // Blocks of the same size, and any bits are valid.
  GgufDocument::Tensor* embedding = seeds[0].FindTensor("token_embd.weight");
  embedding->type = Traits(kIQ4_NL).gguf_id;
  seeds[1].version = 2;
  seeds[2].alignment = 8;
  seeds[2].Set(Uint32Entry("general.alignment", 8));
  for (const GgufDocument& seed : seeds) {
    CHECK(seed.Encode().size() <= GgufMutator::kMaxSeedBytes);
  }
  return seeds;
}

}  // namespace

GgufMutator::GgufMutator(uint64_t seed) : random_(seed), seeds_(MakeSeeds()) {}

std::vector<uint8_t> GgufMutator::Next() {
  GgufDocument document = seeds_[random_.Below(seeds_.size())];
  // Mostly one fault: of two, the parser sees only the first.
  int structural = random_.Below(8) == 0 ? 0 : random_.Below(6) == 0 ? 2 : 1;
  for (int i = 0; i < structural; ++i) EditStructure(random_, document);
  std::vector<uint8_t> bytes = document.Encode();
  bool bytewise = structural == 0 || random_.Below(10) == 0;
  for (uint64_t i = bytewise ? 1 + random_.Below(3) : 0; i > 0; --i) {
    EditBytes(random_, bytes);
  }
  return bytes;
}

}  // namespace penstock
