#pragma once

#include "common/model/files/model_file.h"

namespace penstock {

// The model that a suite runs over: one suite is linked with each of
// served_model_real.cc and served_model_tiny.cc. Opened once, never closed.
const ModelFile& ServedModel();

}  // namespace penstock
