#include "tools/simulator/sim_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace penstock {

void SimLog::Add(Instant when, const std::string& line) {
  std::string stamped = absl::StrCat(when.nanos(), " ", line);
  // The hash so far goes in with the line.
  absl::StrAppend(&stamped, "\n", hash_);
  hash_ = hasher_->Checksum(absl::MakeConstSpan(
      reinterpret_cast<const uint8_t*>(stamped.data()), stamped.size()));
  if (kept_ == 0 && !on_line) return;
  stamped.resize(stamped.rfind('\n'));
  if (on_line) on_line(stamped);
  lines_.push_back(std::move(stamped));
  if (lines_.size() > kept_) lines_.pop_front();
}

}  // namespace penstock
