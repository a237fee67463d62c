#include "tools/simulator/plan_text.h"

#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

// Calls `visit(name, field)` for each field, in order: the names of the text.
template <typename Visit>
void VisitFields(SimRequest& request, Visit&& visit) {
  visit("at", request.at);
  visit("seed", request.seed);
  visit("prompt", request.prompt);
  visit("prefix", request.prefix);
  visit("shared", request.shared);
  visit("max_tokens", request.max_tokens);
  visit("n", request.n);
  visit("best_of", request.best_of);
  visit("beam_width", request.beam_width);
  visit("logprobs", request.logprobs);
  visit("prompt_logprobs", request.prompt_logprobs);
  visit("temperature", request.temperature);
  visit("penalties", request.penalties);
  visit("stop", request.stop);
  visit("priority", request.priority);
  visit("timeout", request.timeout);
  visit("cancel_after", request.cancel_after);
}

template <typename Visit>
void VisitFields(SimPlan& plan, Visit&& visit) {
  SimClusterOptions& cluster = plan.cluster;
  visit("seed", cluster.seed);
  visit("prefill_workers", cluster.prefill_workers);
  visit("decode_workers", cluster.decode_workers);
  visit("both_roles", cluster.both_roles);
  visit("blocks", cluster.worker.blocks);
  visit("latency", cluster.latency);
  visit("max_attempts", cluster.router.max_attempts);
  visit("max_running", cluster.router.max_running);
  visit("max_queued", cluster.router.max_queued);
  visit("drain_bound", plan.drain_bound);
}

std::string FormatValue(absl::Duration value) {
  return absl::FormatDuration(value);
}
template <typename T>
std::string FormatValue(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "1" : "0";
  } else {
    return absl::StrCat(value);
  }
}

bool ParseValue(absl::string_view text, absl::Duration& value) {
  return absl::ParseDuration(text, &value);
}
bool ParseValue(absl::string_view text, std::string& value) {
  value = std::string(text);
  return true;
}
bool ParseValue(absl::string_view text, double& value) {
  return absl::SimpleAtod(text, &value);
}
bool ParseValue(absl::string_view text, bool& value) {
  return absl::SimpleAtob(text, &value);
}
template <typename T>
bool ParseValue(absl::string_view text, T& value) {
  return absl::SimpleAtoi(text, &value);
}

// Fields that differ from those of a new `T`, as name and value.
template <typename T>
std::vector<std::pair<std::string, std::string>> Changed(T object) {
  std::vector<std::string> defaults;
  T fresh;
  VisitFields(fresh, [&](const char*, auto& field) {
    defaults.push_back(FormatValue(field));
  });
  std::vector<std::pair<std::string, std::string>> changed;
  size_t at = 0;
  VisitFields(object, [&](const char* name, auto& field) {
    std::string value = FormatValue(field);
    if (value != defaults[at++]) changed.emplace_back(name, std::move(value));
  });
  return changed;
}

template <typename T>
absl::Status Set(T& object, absl::string_view name, absl::string_view value) {
  bool known = false;
  bool parsed = false;
  VisitFields(object, [&](absl::string_view field_name, auto& field) {
    if (field_name != name) return;
    known = true;
    parsed = ParseValue(value, field);
  });
  if (!known) {
    return absl::InvalidArgumentError(absl::StrCat("unknown field ", name));
  }
  if (!parsed) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " cannot be \"", value, "\""));
  }
  return absl::OkStatus();
}

absl::StatusOr<SimRequest> ParseRequest(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.size() % 2 != 0) {
    return absl::InvalidArgumentError("a field without a value");
  }
  SimRequest request;
  for (size_t i = 0; i < words.size(); i += 2) {
    RETURN_IF_ERROR(Set(request, words[i], words[i + 1]));
  }
  return request;
}

absl::Status ParseLine(absl::string_view line, SimPlan& plan) {
  if (absl::ConsumePrefix(&line, "request ")) {
    ASSIGN_OR_RETURN(SimRequest request, ParseRequest(line));
    plan.requests.push_back(std::move(request));
    return absl::OkStatus();
  }
  if (absl::ConsumePrefix(&line, "fault ")) {
    ASSIGN_OR_RETURN(Fault fault, ParseFault(line));
    plan.faults.push_back(std::move(fault));
    return absl::OkStatus();
  }
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.size() != 2) {
    return absl::InvalidArgumentError("not a name and a value");
  }
  return Set(plan, words[0], words[1]);
}

}  // namespace

std::string FormatPlan(const SimPlan& plan) {
  std::string text;
  for (const auto& [name, value] : Changed(plan)) {
    absl::StrAppend(&text, name, " ", value, "\n");
  }
  for (const SimRequest& request : plan.requests) {
    absl::StrAppend(&text, "request");
    for (const auto& [name, value] : Changed(request)) {
      absl::StrAppend(&text, " ", name, " ", value);
    }
    absl::StrAppend(&text, "\n");
  }
  for (const Fault& fault : plan.faults) {
    absl::StrAppend(&text, "fault ", FormatFault(fault), "\n");
  }
  return text;
}

absl::StatusOr<SimPlan> ParsePlan(absl::string_view text) {
  SimPlan plan;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    if (absl::Status status = ParseLine(line, plan); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", status.message()));
    }
  }
  return plan;
}

}  // namespace penstock
