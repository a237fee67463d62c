#include "tools/simulator/plan_text.h"

#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/transfer/kv_transport.h"
#include "tools/simulator/plan_check.h"

namespace penstock {
namespace {

// After the name of a transport whose receiver does not validate.
constexpr char kUnchecked[] = "-unchecked";

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
  visit("mirostat", request.mirostat);
  visit("stop", request.stop);
  visit("priority", request.priority);
  visit("timeout", request.timeout);
  visit("cancel_after", request.cancel_after);
}

template <typename Visit>
void VisitFields(SimWorkerOptions& worker, Visit&& visit) {
  visit("name", worker.key.name);
  visit("roles", worker.roles);
  visit("blocks", worker.blocks);
  visit("max_rows", worker.backend.max_rows);
  visit("max_sequences", worker.backend.max_sequences);
  visit("ranks", worker.backend.ranks);
  visit("rank_spread", worker.backend.rank_spread);
  visit("modelled", worker.backend.modelled);
  visit("transports", worker.transports);
  visit("machine", worker.machine);
  visit("process", worker.process);
  visit("lease", worker.handoff.lease);
  visit("renew_every", worker.handoff.renew_every);
  visit("cache_events", worker.cache_events);
  visit("itl_target", worker.engine.itl_target);
  visit("tier_pages", worker.tier.pages);
  visit("tier_wait", worker.tier.wait);
  visit("tier_each", worker.tier.each);
  visit("tier_foresight", worker.tier.foresight);
  visit("tier_asks", worker.tier.asks);
  visit("tier_picky", worker.tier.picky);
  visit("tier_missing", worker.tier.missing);
  visit("tier_fails", worker.tier.fails);
  visit("tier_corrupt", worker.tier.corrupt);
  visit("tier_confused", worker.tier.confused);
  visit("tier_late", worker.tier.late);
}

template <typename Visit>
void VisitFields(SimPlan& plan, Visit&& visit) {
  SimClusterOptions& cluster = plan.cluster;
  visit("seed", cluster.seed);
  visit("routers", cluster.routers);
  visit("prefill_workers", cluster.prefill_workers);
  visit("decode_workers", cluster.decode_workers);
  visit("both_roles", cluster.both_roles);
  visit("blocks", cluster.worker.blocks);
  visit("latency", cluster.latency);
  visit("bytes_per_second", cluster.bytes_per_second);
  visit("page_bytes", cluster.page_bytes);
  visit("any_place", cluster.any_place);
  visit("spill_prefill", cluster.spill_prefill);
  visit("max_attempts", cluster.router.max_attempts);
  visit("max_running", cluster.router.max_running);
  visit("max_queued", cluster.router.max_queued);
  visit("drain_bound", plan.drain_bound);
}

std::string FormatValue(absl::Duration value) {
  return absl::FormatDuration(value);
}
std::string FormatValue(const WorkerRoles& roles) {
  return roles.prefill && roles.decode ? "both"
         : roles.prefill               ? "prefill"
         : roles.decode                ? "decode"
                                       : "none";
}
std::string FormatValue(const std::vector<SimTransportOptions>& transports) {
  return absl::StrJoin(
      transports, ",",
      [](std::string* out, const SimTransportOptions& transport) {
        absl::StrAppend(out, TransportName(transport.kind),
                        transport.receiver_validates ? "" : kUnchecked);
      });
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
bool ParseValue(absl::string_view text, WorkerRoles& roles) {
  roles = {text == "both" || text == "prefill",
           text == "both" || text == "decode"};
  return roles.prefill || roles.decode;
}
bool ParseValue(absl::string_view text,
                std::vector<SimTransportOptions>& transports) {
  for (absl::string_view name : absl::StrSplit(text, ',')) {
    const bool unchecked = absl::ConsumeSuffix(&name, kUnchecked);
    absl::StatusOr<TransportKind> kind = ParseTransport(name);
    if (!kind.ok()) return false;
    transports.emplace_back(*kind);
    transports.back().receiver_validates = !unchecked;
    transports.back().preference = SimPreference(*kind);
  }
  return true;
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

template <typename T>
absl::StatusOr<T> ParseFields(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.size() % 2 != 0) {
    return absl::InvalidArgumentError("a field without a value");
  }
  T object;
  for (size_t i = 0; i < words.size(); i += 2) {
    RETURN_IF_ERROR(Set(object, words[i], words[i + 1]));
  }
  return object;
}

template <typename T>
void AppendFields(absl::string_view kind, const T& object, std::string& text) {
  absl::StrAppend(&text, kind);
  for (const auto& [name, value] : Changed(object)) {
    absl::StrAppend(&text, " ", name, " ", value);
  }
  absl::StrAppend(&text, "\n");
}

absl::Status ParseLine(absl::string_view line, SimPlan& plan) {
  if (absl::ConsumePrefix(&line, "request ")) {
    ASSIGN_OR_RETURN(SimRequest request, ParseFields<SimRequest>(line));
    RETURN_IF_ERROR(CheckRequest(request));
    plan.requests.push_back(std::move(request));
    return absl::OkStatus();
  }
  if (absl::ConsumePrefix(&line, "worker ")) {
    ASSIGN_OR_RETURN(SimWorkerOptions worker,
                     ParseFields<SimWorkerOptions>(line));
    RETURN_IF_ERROR(CheckWorker(worker, plan));
    plan.cluster.workers.push_back(std::move(worker));
    return absl::OkStatus();
  }
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.size() != 2) {
    return absl::InvalidArgumentError("not a name and a value");
  }
  RETURN_IF_ERROR(Set(plan, words[0], words[1]));
  return CheckSettings(plan);
}

absl::Status ParseFaultLine(absl::string_view line, SimPlan& plan) {
  ASSIGN_OR_RETURN(Fault fault, ParseFault(line));
  RETURN_IF_ERROR(CheckFault(fault, plan));
  plan.faults.push_back(std::move(fault));
  return absl::OkStatus();
}

absl::Status AtLine(int number, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("line ", number, ": ", status.message()));
}

}  // namespace

std::string FormatPlan(const SimPlan& plan) {
  std::string text;
  for (const auto& [name, value] : Changed(plan)) {
    absl::StrAppend(&text, name, " ", value, "\n");
  }
  for (const SimWorkerOptions& worker : plan.cluster.workers) {
    AppendFields("worker", worker, text);
  }
  for (const SimRequest& request : plan.requests) {
    AppendFields("request", request, text);
  }
  for (const Fault& fault : plan.faults) {
    absl::StrAppend(&text, "fault ", FormatFault(fault), "\n");
  }
  return text;
}

absl::StatusOr<SimPlan> ParsePlan(absl::string_view text) {
  SimPlan plan;
  // A fault may come before the worker that it strikes.
  std::vector<std::pair<int, absl::string_view>> faults;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    if (absl::ConsumePrefix(&line, "fault ")) {
      faults.emplace_back(number, line);
    } else {
      RETURN_IF_ERROR(AtLine(number, ParseLine(line, plan)));
    }
  }
  for (const auto& [at, line] : faults) {
    RETURN_IF_ERROR(AtLine(at, ParseFaultLine(line, plan)));
  }
  if (WorkersOf(plan.cluster).empty()) {
    return absl::InvalidArgumentError("the plan has no worker");
  }
  return plan;
}

}  // namespace penstock
