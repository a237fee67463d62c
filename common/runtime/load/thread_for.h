#pragma once

#include "common/model/files/parallel_for.h"

namespace penstock {

// A ParallelFor over `threads` threads, of which the caller is one and the
// others live as long as a call.
ParallelFor ThreadFor(int threads);

}  // namespace penstock
