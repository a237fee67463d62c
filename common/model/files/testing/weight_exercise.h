#pragma once

#include "common/model/files/model_content.h"

namespace penstock {

// Checks all that a forward pass relies on in what a reader accepted, and reads
// every row of every tensor; dies on a broken promise.
void ExerciseSpec(const ModelSpec& spec);
void ExerciseWeights(const ModelContent& content);

}  // namespace penstock
