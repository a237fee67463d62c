#pragma once

#include <string>

#include "common/model/files/model_file.h"

namespace penstock {

// Writes generation.jsonl and scores.jsonl into `folder`, which is made, as the
// readers of tests/contract/model_cases.h take them: the float oracle's own
// answers over `model` to the prompts and texts of the folder `from`, whose
// vocabulary the model must have. An answer is as long as that of `from`, or
// ends before. A minute or two of CPU for a small model. Dies when it cannot
// write.
void WriteOracleCases(const ModelFile& model, const std::string& from,
                      const std::string& folder);

}  // namespace penstock
