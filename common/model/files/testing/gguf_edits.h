#pragma once

#include "common/env/random.h"
#include "common/model/files/testing/gguf_builder.h"

namespace penstock {

// One random edit of a document: a count, length, type, offset or value set to
// an edge, something removed, doubled, renamed, swapped, mistyped or nested.
void EditStructure(Random& random, GgufDocument& document);

}  // namespace penstock
