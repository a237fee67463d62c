#pragma once

#include <string>
#include <vector>

#include "common/base/id.h"

namespace penstock {

// A prompt for a tiny random model of tests/data/families, and what the
// transformers library makes of it in float32; the README there says how.
struct FamilyCase {
  std::string name;
  std::vector<TokenId> ids;
  std::vector<int> positions;  // whose logits are known
  // [positions.size()][vocab]
  std::vector<std::vector<float>> logits;
  // Those of the GGUF file, which cannot say all that config.json says.
  std::vector<std::vector<float>> gguf_logits;
};

// Reads `folder`/expected.json; dies when it is missing or malformed.
std::vector<FamilyCase> ReadFamilyCases(const std::string& folder);

}  // namespace penstock
