#pragma once

#include <cstdint>

namespace penstock {

// Bytes a second that `threads` threads together read from memory, far more
// than caches hold: the best of a few passes. Takes well under a second.
double MeasureReadBandwidth(int threads);

// Threads that the host can run at once; at least 1.
int HostThreads();

}  // namespace penstock
