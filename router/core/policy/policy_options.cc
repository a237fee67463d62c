#include "router/core/policy/policy_options.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock {
namespace {

constexpr PolicyKind kKinds[] = {
    PolicyKind::kPrefixAware,   PolicyKind::kLeastLoad,
    PolicyKind::kRoundRobin,    PolicyKind::kRandom,
    PolicyKind::kPowerOfTwo,    PolicyKind::kSessionSticky,
    PolicyKind::kConsistentHash};

}  // namespace

const char* PolicyName(PolicyKind kind) {
  switch (kind) {
    case PolicyKind::kPrefixAware:
      return "prefix_aware";
    case PolicyKind::kLeastLoad:
      return "least_load";
    case PolicyKind::kRoundRobin:
      return "round_robin";
    case PolicyKind::kRandom:
      return "random";
    case PolicyKind::kPowerOfTwo:
      return "power_of_two";
    case PolicyKind::kSessionSticky:
      return "session_sticky";
    case PolicyKind::kConsistentHash:
      return "consistent_hash";
  }
  return "unknown";
}

std::vector<std::string> PolicyNames() {
  std::vector<std::string> names;
  for (const PolicyKind kind : kKinds) names.push_back(PolicyName(kind));
  return names;
}

absl::StatusOr<PolicyKind> ParsePolicy(absl::string_view name) {
  for (const PolicyKind kind : kKinds) {
    if (PolicyName(kind) == name) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("policy is \"", name, "\"; use one of ",
                   absl::StrJoin(PolicyNames(), ", ")));
}

}  // namespace penstock
