#include "common/runtime/load/model_loader.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <thread>
#include <utility>

#include "common/base/status_macros.h"
#include "common/env/real/monotonic_clock.h"
#include "common/model/files/model_path.h"
#include "common/model/files/quantizer.h"
#include "common/runtime/load/load_display.h"
#include "common/runtime/load/thread_for.h"

namespace penstock {

absl::StatusOr<std::unique_ptr<ModelFile>> LoadModel(
    const ModelLoadOptions& options) {
  ModelFileOptions file;
  file.convert = options.convert;
  if (!options.weights.empty()) {
    ASSIGN_OR_RETURN(file.weights, QuantizedTypeOfName(options.weights));
  }
  const int cores =
      std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  file.parallel_for = ThreadFor(options.threads > 0 ? options.threads : cores);
  const MonotonicClock clock;
  LoadDisplay display({.name = ModelNameOf(options.path),
                       .terminal = isatty(STDERR_FILENO) != 0,
                       .out = &std::cerr,
                       .clock = &clock});
  file.progress = [&display](absl::string_view stage, uint64_t more,
                             uint64_t total) {
    display.Add(stage, more, total);
  };
  return OpenModelFile(options.path, file);
}

}  // namespace penstock
