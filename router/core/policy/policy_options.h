#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace penstock {

// How workers are ranked for a request.
enum class PolicyKind {
  kPrefixAware,     // least predicted time, cached prefixes counted
  kLeastLoad,       // least work ahead
  kRoundRobin,      // one after the other
  kRandom,          // any
  kPowerOfTwo,      // the less loaded of two drawn at random
  kSessionSticky,   // who served the session last
  kConsistentHash,  // by a hash of session or prompt, within a bounded load
};

// "prefix_aware", ...: the names used by flags, configuration and logs.
const char* PolicyName(PolicyKind kind);
std::vector<std::string> PolicyNames();
// INVALID_ARGUMENT lists the names.
absl::StatusOr<PolicyKind> ParsePolicy(absl::string_view name);

struct PolicyOptions {
  PolicyKind kind = PolicyKind::kPrefixAware;
  // Prompts with fewer uncached tokens than this are prefilled by decode.
  int local_prefill_tokens = 16;
  // prefix_aware: decode also prefills whatever it is predicted to cost less
  // there, the answers that this stops included.
  bool spill_prefill = true;
  // Requests are taken to generate this much, unless they ask for less.
  int expected_tokens = 128;
  int64_t kv_bytes_per_token = 0;
  absl::Duration retry_after = absl::Seconds(1);  // advice when all are full
};

}  // namespace penstock
