#include "tools/penstock/restart_pause.h"

#include <algorithm>
#include <utility>

namespace penstock {

absl::Duration RestartPause::After(absl::Duration life) {
  if (life >= kGoodLife) next_ = kFirst;
  return std::exchange(next_, std::min(next_ * 2, kLongest));
}

}  // namespace penstock
