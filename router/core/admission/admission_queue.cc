#include "router/core/admission/admission_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

constexpr int kMaxWeight = 1 << 20;

absl::Status CheckLimits(absl::string_view tenant, const TenantLimits& limits) {
  if (limits.weight >= 1 && limits.weight <= kMaxWeight &&
      limits.max_running >= 0 && limits.max_queued >= 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "tenant \"", tenant, "\": weight must be in [1, ", kMaxWeight,
      "], max_running and max_queued must not be negative"));
}

absl::Status Full(absl::string_view why) {
  return MakeError(ErrorReason::kQueueFull, why);
}

}  // namespace

absl::Status AdmissionQueue::Validate(const Options& options) {
  if (options.max_queued < 0) {
    return absl::InvalidArgumentError("max_queued must not be negative");
  }
  if (options.max_age <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("max_age must be positive");
  }
  if (options.quantum < 1 || options.quantum > (1 << 30)) {
    return absl::InvalidArgumentError("quantum must be in [1, 2^30]");
  }
  absl::Status status = CheckLimits("", options.others);
  for (const auto& [name, limits] : options.tenants) {
    status.Update(CheckLimits(name, limits));
  }
  return status;
}

AdmissionQueue::AdmissionQueue(Options options) : options_(std::move(options)) {
  CHECK(Validate(options_).ok());
}

const TenantLimits& AdmissionQueue::LimitsOf(const std::string& tenant) const {
  auto it = options_.tenants.find(tenant);
  return it == options_.tenants.end() ? options_.others : it->second;
}

int64_t AdmissionQueue::TurnOf(const std::string& tenant) const {
  return options_.quantum * LimitsOf(tenant).weight;
}

int AdmissionQueue::QueuedOf(const std::string& tenant) const {
  int queued = 0;
  for (const auto& [priority, level] : levels_) {
    auto line = level.lines.find(tenant);
    if (line == level.lines.end()) continue;
    queued += static_cast<int>(line->second.entries.size());
  }
  return queued;
}

absl::StatusOr<std::optional<AdmissionQueue::Id>> AdmissionQueue::Push(
    Entry entry) {
  CHECK(entry.work > 0 && !index_.contains(entry.id));
  const TenantLimits& limits = LimitsOf(entry.tenant);
  const int queued = QueuedOf(entry.tenant);
  if (limits.max_queued > 0 && queued >= limits.max_queued) {
    return Full(absl::StrCat(queued, " requests of this tenant wait already"));
  }
  const absl::Duration wait =
      PredictedWait(entry.tenant, entry.priority, entry.since);
  if (wait > options_.max_age) {
    return Full(absl::StrCat(
        "its turn would come in ",
        absl::FormatDuration(absl::Ceil(wait, absl::Milliseconds(1))),
        ", which is too late"));
  }
  std::optional<Id> gone;
  if (size() >= options_.max_queued) {
    absl::StatusOr<std::optional<Id>> room = MakeRoomFor(entry);
    if (!room.ok()) return room;
    gone = *room;
    Remove(*gone);
  }
  index_[entry.id] = {entry.priority, entry.tenant, entry.since};
  Level& level = levels_[entry.priority];
  auto [line, is_new] = level.lines.try_emplace(entry.tenant);
  if (is_new) level.ring.push_back(entry.tenant);
  line->second.work += entry.work;
  level.work += entry.work;
  const Id id = entry.id;
  line->second.entries.emplace(id, std::move(entry));
  return gone;
}

absl::StatusOr<std::optional<AdmissionQueue::Id>> AdmissionQueue::MakeRoomFor(
    const Entry& entry) const {
  const absl::Status full = Full(absl::StrCat(size(), " requests wait"));
  if (levels_.empty()) return full;
  const auto& [priority, lowest] = *levels_.rbegin();
  if (priority > entry.priority) return full;
  // Of the lowest priority the tenant with most for its weight, the newcomer
  // counted in. A tie is the newcomer's.
  const std::string* longest = nullptr;
  int64_t most = 0, weight = 1;
  auto consider = [&](const std::string& tenant, int64_t queued) {
    const int64_t w = LimitsOf(tenant).weight;
    if (longest != nullptr && queued * weight <= most * w) return;
    longest = &tenant;
    most = queued;
    weight = w;
  };
  if (priority == entry.priority) {
    auto own = lowest.lines.find(entry.tenant);
    consider(entry.tenant,
             own == lowest.lines.end()
                 ? 1
                 : static_cast<int64_t>(own->second.entries.size()) + 1);
  }
  for (const auto& [tenant, line] : lowest.lines) {
    if (priority == entry.priority && tenant == entry.tenant) continue;
    consider(tenant, static_cast<int64_t>(line.entries.size()));
  }
  if (priority == entry.priority && *longest == entry.tenant) return full;
  return lowest.lines.at(*longest).entries.rbegin()->first;
}

std::optional<AdmissionQueue::Id> AdmissionQueue::Front() {
  for (auto& [priority, level] : levels_) {
    if (const Line* line = Turn(level)) return line->entries.begin()->first;
  }
  return std::nullopt;
}

AdmissionQueue::Line* AdmissionQueue::Turn(Level& level) {
  for (int pass = 0; pass < 2; ++pass) {
    // One more, since the first may have to come round again.
    for (size_t step = 0; step <= level.ring.size(); ++step) {
      const std::string& tenant = level.ring.front();
      Line& line = level.lines.at(tenant);
      const int64_t work = line.entries.begin()->second.work;
      if (MayRun(tenant)) {
        if (line.deficit >= work) return &line;
        if (!level.given) line.deficit += TurnOf(tenant);
        level.given = true;
        if (line.deficit >= work) return &line;
      }
      NextInRing(level);
    }
    SkipRounds(level);
  }
  return nullptr;
}

void AdmissionQueue::NextInRing(Level& level) {
  std::rotate(level.ring.begin(), level.ring.begin() + 1, level.ring.end());
  level.given = false;
}

void AdmissionQueue::SkipRounds(Level& level) {
  int64_t rounds = std::numeric_limits<int64_t>::max();
  for (const auto& [tenant, line] : level.lines) {
    if (!MayRun(tenant)) continue;
    const int64_t lacking = line.entries.begin()->second.work - line.deficit;
    rounds = std::min(rounds, (lacking - 1) / TurnOf(tenant));
  }
  for (auto& [tenant, line] : level.lines) {
    if (MayRun(tenant)) line.deficit += rounds * TurnOf(tenant);
  }
}

void AdmissionQueue::Pop(Id id, Instant now) {
  const Where& where = index_.at(id);
  rate_.Add(
      levels_.at(where.priority).lines.at(where.tenant).entries.at(id).work,
      now);
  Erase(id, /*used=*/true);
}

void AdmissionQueue::Remove(Id id) {
  if (index_.contains(id)) Erase(id, /*used=*/false);
}

void AdmissionQueue::Erase(Id id, bool used) {
  const Where where = index_.extract(id).mapped();
  auto level = levels_.find(where.priority);
  auto line = level->second.lines.find(where.tenant);
  const int64_t work = line->second.entries.extract(id).mapped().work;
  line->second.work -= work;
  level->second.work -= work;
  if (used) line->second.deficit -= work;
  if (!line->second.entries.empty()) return;
  // Who wants nothing saves up nothing.
  std::vector<std::string>& ring = level->second.ring;
  if (ring.front() == where.tenant) level->second.given = false;
  std::erase(ring, where.tenant);
  level->second.lines.erase(line);
  if (ring.empty()) levels_.erase(level);
}

std::vector<AdmissionQueue::Id> AdmissionQueue::Expired(Instant now) const {
  std::vector<Id> expired;
  for (const auto& [id, where] : index_) {
    if (now - where.since < options_.max_age) break;  // they came in order
    expired.push_back(id);
  }
  return expired;
}

Instant AdmissionQueue::next_expiry() const {
  return index_.empty() ? Instant::Infinite()
                        : index_.begin()->second.since + options_.max_age;
}

void AdmissionQueue::Began(const std::string& tenant) { ++running_[tenant]; }

void AdmissionQueue::Ended(const std::string& tenant) {
  auto it = running_.find(tenant);
  CHECK(it != running_.end());
  if (--it->second == 0) running_.erase(it);
}

bool AdmissionQueue::MayRun(const std::string& tenant) const {
  const int most = LimitsOf(tenant).max_running;
  auto it = running_.find(tenant);
  return most == 0 || it == running_.end() || it->second < most;
}

absl::Duration AdmissionQueue::PredictedWait(const std::string& tenant,
                                             int priority, Instant now) const {
  const std::optional<double> rate = rate_.At(now);
  if (!rate.has_value() || *rate <= 0) return absl::ZeroDuration();
  double ahead = 0;
  for (const auto& [at, level] : levels_) {
    if (at < priority) break;
    if (at > priority) {
      ahead += static_cast<double>(level.work);
      continue;
    }
    auto own = level.lines.find(tenant);
    const double weight = LimitsOf(tenant).weight;
    const double own_work =
        own == level.lines.end() ? 0 : static_cast<double>(own->second.work);
    // While its own go, the others get as much for their weights, if they want.
    for (const auto& [name, line] : level.lines) {
      ahead += std::min<double>(static_cast<double>(line.work),
                                own_work * LimitsOf(name).weight / weight);
    }
  }
  return absl::Seconds(ahead / *rate);
}

absl::Status AdmissionQueue::Check() const {
  size_t entries = 0;
  for (const auto& [priority, level] : levels_) {
    int64_t work = 0;
    for (const auto& [tenant, line] : level.lines) {
      entries += line.entries.size();
      int64_t own = 0;
      for (const auto& [id, entry] : line.entries) own += entry.work;
      if (own != line.work || line.entries.empty()) {
        return absl::InternalError(absl::StrCat("line of tenant ", tenant,
                                                ": work of ", own, " kept as ",
                                                line.work));
      }
      work += own;
    }
    if (work != level.work || level.ring.size() != level.lines.size()) {
      return absl::InternalError(absl::StrCat(
          "priority ", priority, ": work of ", work, " kept as ", level.work,
          ", ", level.ring.size(), " take turns of ", level.lines.size()));
    }
  }
  if (entries != index_.size()) {
    return absl::InternalError(
        absl::StrCat(entries, " wait, ", index_.size(), " are known"));
  }
  return absl::OkStatus();
}

}  // namespace penstock
