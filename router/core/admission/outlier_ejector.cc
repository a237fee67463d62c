#include "router/core/admission/outlier_ejector.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace penstock {

void OutlierEjector::Add(const std::string& worker) { workers_[worker] = {}; }

void OutlierEjector::Remove(const std::string& worker) {
  workers_.erase(worker);
}

bool OutlierEjector::Record(const std::string& worker, bool good, Instant now) {
  auto it = workers_.find(worker);
  if (it == workers_.end()) return false;
  ++(good ? it->second.good : it->second.bad);
  if (interval_end_ != Instant::Infinite()) return false;
  interval_end_ = now + options_.interval;
  return true;
}

bool OutlierEjector::ejected(const std::string& worker) const {
  auto it = workers_.find(worker);
  return it != workers_.end() && it->second.out;
}

int OutlierEjector::ejections() const {
  return static_cast<int>(
      std::count_if(workers_.begin(), workers_.end(),
                    [](const auto& entry) { return entry.second.out; }));
}

Instant OutlierEjector::next() const {
  Instant next = interval_end_;
  for (const auto& [name, worker] : workers_) {
    if (worker.out) next = std::min(next, worker.until);
  }
  return next;
}

void OutlierEjector::Advance(Instant now) {
  for (auto& [name, worker] : workers_) {
    if (worker.out && worker.until <= now) worker.out = false;
  }
  if (interval_end_ <= now) {
    Judge(now);
    for (auto& [name, worker] : workers_) worker.good = worker.bad = 0;
    interval_end_ = Instant::Infinite();
  }
}

void OutlierEjector::Judge(Instant now) {
  int good = 0, bad = 0;
  for (const auto& [name, worker] : workers_) {
    good += worker.good;
    bad += worker.bad;
  }
  std::vector<std::pair<double, std::string>> outliers;
  for (auto& [name, worker] : workers_) {
    const int own = worker.good + worker.bad;
    if (worker.out || own < options_.min_requests) continue;
    const double share = static_cast<double>(worker.bad) / own;
    const int others = good + bad - own;
    const double theirs =
        others > 0 ? static_cast<double>(bad - worker.bad) / others : 0;
    if (share < options_.min_failure_share ||
        share <= options_.times_the_others * theirs) {
      worker.times = std::max(0, worker.times - 1);
      continue;
    }
    outliers.push_back({-share, name});
  }
  std::sort(outliers.begin(), outliers.end());
  // Nobody of two is the odd one out.
  const int most = static_cast<int>(
      options_.max_ejected_share * static_cast<double>(workers_.size()) + 1e-9);
  int out = ejections();
  for (const auto& [share, name] : outliers) {
    if (out >= most) return;
    ++out;
    Tally& worker = workers_.at(name);
    worker.out = true;
    ++worker.times;
    worker.until = now + std::min(options_.max_ejection,
                                  worker.times * options_.eject_for);
  }
}

}  // namespace penstock
