#include "tests/contract/served_model.h"
#include "tests/contract/test_models.h"

namespace penstock {

const ModelFile& ServedModel() { return TinyModel(); }

}  // namespace penstock
