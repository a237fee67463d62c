#pragma once

namespace penstock {

// Threads that the host can run at once; at least 1.
int HostThreads();

}  // namespace penstock
