#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "tools/simulator/fault.h"

namespace penstock {

// The faults that are on the paths between hosts right now. Single-threaded;
// cheap to ask while there are none.
class SimPaths {
 public:
  using RuleId = uint64_t;
  RuleId Add(const Fault& fault);
  void Remove(RuleId rule);
  bool empty() const { return rules_.empty(); }

  // Nothing that `from` sends arrives at `to`.
  bool Blocked(const std::string& from, const std::string& to) const;
  // `self` has a way to find out that it and `peer` do not hear each other.
  bool Noticed(const std::string& self, const std::string& peer) const;
  absl::Duration Delay(const std::string& from, const std::string& to) const;
  // What the bandwidth is divided by.
  double Slowness(const std::string& from, const std::string& to) const;
  // Of a fault with a probability.
  double Chance(FaultKind kind, const std::string& from,
                const std::string& to) const;

 private:
  std::map<RuleId, Fault> rules_;
  RuleId next_rule_ = 1;
};

}  // namespace penstock
