#include "common/runtime/load/load_display.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace penstock {
namespace {

constexpr absl::Duration kSilent = absl::Milliseconds(300);
constexpr absl::Duration kRedraw = absl::Milliseconds(100);
constexpr absl::Duration kLine = absl::Seconds(2);
constexpr int kBarWidth = 30;
constexpr char kEraseLine[] = "\r\x1b[K";

}  // namespace

LoadDisplay::LoadDisplay(Options options)
    : options_(std::move(options)),
      next_(options_.clock->Now() + (options_.terminal ? kSilent : kLine)) {}

LoadDisplay::~LoadDisplay() {
  if (options_.terminal && drawn_) *options_.out << kEraseLine << std::flush;
}

void LoadDisplay::Add(absl::string_view stage, uint64_t more, uint64_t total) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (stage_ != stage) {
    stage_ = std::string(stage);
    done_ = 0;
  }
  done_ += more;
  total_ = total;
  const Instant now = options_.clock->Now();
  if (now >= next_) Draw(now);
}

void LoadDisplay::Draw(Instant now) {
  next_ = now + (options_.terminal ? kRedraw : kLine);
  drawn_ = true;
  const uint64_t done = std::min(done_, total_);
  const double part =
      total_ == 0 ? 1.0
                  : static_cast<double>(done) / static_cast<double>(total_);
  constexpr double kGigabyte = 1e9;
  const std::string figures =
      absl::StrFormat("%s %s: %3.0f%% of %.2f GB", options_.name, stage_,
                      100 * part, static_cast<double>(total_) / kGigabyte);
  if (!options_.terminal) {
    *options_.out << figures << std::endl;
    return;
  }
  const int full = static_cast<int>(kBarWidth * part);
  *options_.out << kEraseLine << "[" << std::string(full, '#')
                << std::string(kBarWidth - full, ' ') << "] " << figures
                << std::flush;
}

}  // namespace penstock
