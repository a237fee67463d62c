#include "common/transfer/inproc/inproc_hub.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace penstock {

InprocHub& InprocHub::Process() {
  static InprocHub* hub = new InprocHub;
  return *hub;
}

absl::Status InprocHub::Add(const std::string& name, const Entry& entry) {
  std::lock_guard lock(mutex_);
  if (!slots_.emplace(name, Slot{entry}).second) {
    return absl::AlreadyExistsError(
        absl::StrCat("worker name \"", name, "\" is taken in this process"));
  }
  return absl::OkStatus();
}

void InprocHub::Remove(const std::string& name) {
  std::unique_lock lock(mutex_);
  auto at = slots_.find(name);
  CHECK(at != slots_.end()) << name;
  at->second.leaving = true;
  unused_.wait(lock, [&] { return at->second.users == 0; });
  slots_.erase(at);
}

std::optional<InprocHub::Lease> InprocHub::Use(const std::string& name) {
  std::lock_guard lock(mutex_);
  auto at = slots_.find(name);
  if (at == slots_.end() || at->second.leaving) return std::nullopt;
  ++at->second.users;
  return Lease(this, name, at->second.entry);
}

InprocHub::Lease::Lease(Lease&& other) noexcept
    : hub_(std::exchange(other.hub_, nullptr)),
      name_(std::move(other.name_)),
      entry_(other.entry_) {}

InprocHub::Lease::~Lease() {
  if (hub_ == nullptr) return;
  std::lock_guard lock(hub_->mutex_);
  --hub_->slots_.at(name_).users;
  hub_->unused_.notify_all();
}

}  // namespace penstock
