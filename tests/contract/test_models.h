#pragma once

#include "common/model/files/model_file.h"

namespace penstock {

// The model that the golden cases were made with; dies when it is missing
// (tools/get_model fetches it). Opened once, never closed.
const ModelFile& RealModel();

// Small models with random weights and a context of 1024: all matrices in
// Q4_1, and every supported type in turn.
const ModelFile& TinyModel();
const ModelFile& TinyModelOfAllTypes();

}  // namespace penstock
