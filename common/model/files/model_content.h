#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/model/files/model_file.h"
#include "common/model/model_spec.h"
#include "common/model/vocabulary.h"

namespace penstock {

// What a format's reader makes of a file: the same for every format. The views
// of the weights point into the bytes that were read, and into `derived`.
struct ModelContent {
  ModelSpec spec;
  ModelWeights weights;
  std::vector<std::unique_ptr<uint8_t[]>> derived;
  Vocabulary vocabulary;
  std::string chat_template;
};

}  // namespace penstock
