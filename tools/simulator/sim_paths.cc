#include "tools/simulator/sim_paths.h"

#include <algorithm>

namespace penstock {
namespace {

// Is what `from` sends to `to` sent by the rule's host?
bool Leaves(const Fault& rule, const std::string& from, const std::string& to) {
  return rule.host == from && (rule.peer.empty() || rule.peer == to);
}

bool Between(const Fault& rule, const std::string& a, const std::string& b) {
  return Leaves(rule, a, b) || Leaves(rule, b, a);
}

}  // namespace

SimPaths::RuleId SimPaths::Add(const Fault& fault) {
  rules_.emplace(next_rule_, fault);
  return next_rule_++;
}

void SimPaths::Remove(RuleId rule) { rules_.erase(rule); }

bool SimPaths::Blocked(const std::string& from, const std::string& to) const {
  for (const auto& [id, rule] : rules_) {
    if (rule.kind == FaultKind::kPartition && Between(rule, from, to)) {
      return true;
    }
    if (rule.kind == FaultKind::kHalfOpen && Leaves(rule, from, to)) {
      return true;
    }
  }
  return false;
}

bool SimPaths::Noticed(const std::string& self, const std::string& peer) const {
  for (const auto& [id, rule] : rules_) {
    if (rule.kind == FaultKind::kPartition && Between(rule, self, peer)) {
      return true;
    }
    if (rule.kind == FaultKind::kHalfOpen && Leaves(rule, peer, self)) {
      return true;
    }
  }
  return false;
}

absl::Duration SimPaths::Delay(const std::string& from,
                               const std::string& to) const {
  absl::Duration delay;
  for (const auto& [id, rule] : rules_) {
    if (rule.kind == FaultKind::kDelay && Between(rule, from, to)) {
      delay += absl::Seconds(rule.amount);
    }
  }
  return delay;
}

double SimPaths::Slowness(const std::string& from,
                          const std::string& to) const {
  double slowness = 1;
  for (const auto& [id, rule] : rules_) {
    if (rule.kind == FaultKind::kSlowLink && Between(rule, from, to)) {
      slowness *= rule.amount;
    }
  }
  return slowness;
}

double SimPaths::Chance(FaultKind kind, const std::string& from,
                        const std::string& to) const {
  double chance = 0;
  for (const auto& [id, rule] : rules_) {
    if (rule.kind == kind && Between(rule, from, to)) {
      chance = std::max(chance, rule.amount);
    }
  }
  return chance;
}

}  // namespace penstock
