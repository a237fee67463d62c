#pragma once

#include <cstdint>
#include <vector>

#include "common/env/random.h"
#include "common/model/files/testing/gguf_builder.h"

namespace penstock {

// Makes broken model files for ever: takes a valid seed of at most 16 KiB,
// breaks its structure in a way that knows the format (so that deep checks are
// reached), and sometimes its bytes. Equal seeds give equal files.
// Single-threaded.
class GgufMutator {
 public:
  static constexpr size_t kMaxSeedBytes = 16384;

  explicit GgufMutator(uint64_t seed);

  std::vector<uint8_t> Next();

  // The valid files it starts from.
  const std::vector<GgufDocument>& seeds() const { return seeds_; }

 private:
  SeededRandom random_;
  std::vector<GgufDocument> seeds_;
};

}  // namespace penstock
