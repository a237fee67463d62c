#include "tools/simulator/fault.h"

#include <array>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"

namespace penstock {
namespace {

constexpr std::array<std::pair<FaultKind, absl::string_view>, kFaultKinds>
    kNames = {{
        {FaultKind::kPartition, "partition"},
        {FaultKind::kHalfOpen, "half-open"},
        {FaultKind::kDelay, "delay"},
        {FaultKind::kSlowLink, "slow-link"},
        {FaultKind::kPostFails, "post-fails"},
        {FaultKind::kCompletionLost, "completion-lost"},
        {FaultKind::kPageDuplicated, "page-duplicated"},
        {FaultKind::kPageReordered, "page-reordered"},
        {FaultKind::kPageCorrupted, "page-corrupted"},
        {FaultKind::kLateWrite, "late-write"},
        {FaultKind::kStreamBreaks, "stream-breaks"},
        {FaultKind::kKill, "kill"},
        {FaultKind::kFreeze, "freeze"},
        {FaultKind::kSlow, "slow"},
        {FaultKind::kClockJump, "clock-jump"},
        {FaultKind::kClockDrift, "clock-drift"},
        {FaultKind::kStepFails, "step-fails"},
        {FaultKind::kKvFull, "kv-full"},
        {FaultKind::kDrain, "drain"},
        {FaultKind::kNoHeartbeats, "no-heartbeats"},
    }};

absl::Status BadFault(absl::string_view line, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("fault \"", line, "\": ", why));
}

// Sets the field that `key` names.
absl::Status SetField(absl::string_view line, absl::string_view key,
                      absl::string_view value, Fault& fault) {
  if (key == "at" || key == "for") {
    absl::Duration& field = key == "at" ? fault.at : fault.lasts;
    if (!absl::ParseDuration(value, &field) || field < absl::ZeroDuration()) {
      return BadFault(
          line, absl::StrCat(key, " wants a duration, not \"", value, "\""));
    }
  } else if (key == "host") {
    fault.host = std::string(value);
  } else if (key == "peer") {
    fault.peer = std::string(value);
  } else if (key == "amount") {
    if (!absl::SimpleAtod(value, &fault.amount)) {
      return BadFault(
          line, absl::StrCat("amount wants a number, not \"", value, "\""));
    }
  } else {
    return BadFault(line, absl::StrCat("no such field: \"", key, "\""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view FaultName(FaultKind kind) {
  for (const auto& [known, name] : kNames) {
    if (known == kind) return name;
  }
  CHECK(false) << "no such fault: " << static_cast<int>(kind);
  return "";
}

std::string FormatFault(const Fault& fault) {
  std::string line =
      absl::StrCat(FaultName(fault.kind), " at ", FormatDuration(fault.at));
  if (fault.lasts != absl::ZeroDuration()) {
    absl::StrAppend(&line, " for ", FormatDuration(fault.lasts));
  }
  if (!fault.host.empty()) absl::StrAppend(&line, " host ", fault.host);
  if (!fault.peer.empty()) absl::StrAppend(&line, " peer ", fault.peer);
  if (fault.amount != 1) {
    absl::StrAppendFormat(&line, " amount %.17g", fault.amount);
  }
  return line;
}

absl::StatusOr<Fault> ParseFault(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, ' ', absl::SkipEmpty());
  Fault fault;
  bool known = false;
  for (const auto& [kind, name] : kNames) {
    if (words.empty() || words[0] != name) continue;
    fault.kind = kind;
    known = true;
  }
  if (!known) return BadFault(line, "it begins with no kind of fault");
  for (size_t i = 1; i < words.size(); i += 2) {
    if (i + 1 == words.size()) {
      return BadFault(line, absl::StrCat(words[i], " has no value"));
    }
    absl::Status set = SetField(line, words[i], words[i + 1], fault);
    if (!set.ok()) return set;
  }
  return fault;
}

}  // namespace penstock
