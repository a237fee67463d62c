#pragma once

#include <cstdint>
#include <vector>

#include "common/env/random.h"
#include "common/model/files/testing/gguf_builder.h"

namespace penstock {

// One random edit of a document: a count, length, type, offset or value set to
// an edge, something removed, doubled, renamed, swapped, mistyped or nested.
void EditStructure(Random& random, GgufDocument& document);

// One random edit of bytes that knows no format: cut, flip, splice, insert,
// or an aligned number set to an edge.
void EditBytes(Random& random, std::vector<uint8_t>& bytes);

// Numbers at which counts, lengths and offsets tend to go wrong.
uint64_t EdgeNumber(Random& random);

}  // namespace penstock
