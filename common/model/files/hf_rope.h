#pragma once

#include "absl/status/statusor.h"
#include "common/model/files/json_config.h"
#include "common/model/model_spec.h"

namespace penstock {

// What config.json says of rotations: "rope_parameters", as transformers has
// written it since version 5, or "rope_theta", "rope_scaling" and their
// neighbours before.
struct HuggingFaceRope {
  RopeSpec global;
  RopeSpec local;  // of layers with a window, where the two differ
  bool has_local = false;
  // Beside the usual scale of scores, with latent attention.
  double score_factor = 1.0;
};

// `head_dim`: the most that can rotate; of it "partial_rotary_factor" does.
absl::StatusOr<HuggingFaceRope> ReadHuggingFaceRope(const JsonConfig& config,
                                                    int head_dim,
                                                    int context_length,
                                                    RopePairing pairing,
                                                    bool latent);

}  // namespace penstock
