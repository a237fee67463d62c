#include "tools/simulator/trace/trace_flags.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

absl::StatusOr<int64_t> ParsePool(const std::string& text,
                                  const CostPreset& preset) {
  if (text == "unlimited") return 0;
  if (text == "preset") return preset.pool_blocks;
  int64_t blocks = 0;
  if (absl::SimpleAtoi(text, &blocks) && blocks > 0) return blocks;
  return absl::InvalidArgumentError(absl::StrCat(
      "--pool-blocks: ", text,
      " is neither a number of KV blocks nor preset nor unlimited"));
}

}  // namespace

void AddTraceFlags(CLI::App& command, TraceFlags& flags) {
  TraceRunOptions& run = flags.run;
  command.add_option("--requests", run.requests,
                     "In all; the trace is played again, with other tokens, "
                     "until there are so many. 0: one pass.");
  command.add_option("--prefill", run.prefill_workers, "Prefill workers.");
  command.add_option("--decode", run.decode_workers, "Decode workers.");
  command.add_option("--cost", flags.cost,
                     absl::StrCat("What work takes: ",
                                  absl::StrJoin(CostPresetNames(), ", "), "."));
  command.add_option("--pool-blocks", flags.pool,
                     "KV blocks of each worker: a number, preset or "
                     "unlimited.");
  command.add_option("--timeout", flags.timeout_s, "Seconds of a request.")
      ->check(CLI::Range(1e-3, 1e6));
  command.add_option("--slo-ttft", flags.ttft_ms,
                     "Good: first token within so many milliseconds.");
  command.add_option("--slo-itl", flags.itl_ms,
                     "Good: mean time between tokens at most so many "
                     "milliseconds.");
  command.add_flag("--spill-prefill,!--no-spill-prefill",
                   run.policy.spill_prefill,
                   "prefix_aware: decode also prefills what is predicted to "
                   "cost less there (default).");
  command
      .add_option("--expected-tokens", run.policy.expected_tokens,
                  "What the router takes a request to generate.")
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option("--local-prefill-tokens", run.policy.local_prefill_tokens,
                  "Fewer uncached tokens are prefilled by decode.")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--seed", run.seed, "Of ties and of tokens.");
  command.add_flag("--json", flags.json, "JSON, one line for each run.");
}

absl::StatusOr<TraceRunOptions> TraceRunOptionsOf(const TraceFlags& flags) {
  TraceRunOptions options = flags.run;
  ASSIGN_OR_RETURN(options.preset, FindCostPreset(flags.cost));
  ASSIGN_OR_RETURN(options.pool_blocks, ParsePool(flags.pool, options.preset));
  options.timeout = absl::Seconds(flags.timeout_s);
  options.ttft_slo = absl::Milliseconds(flags.ttft_ms);
  options.itl_slo = absl::Milliseconds(flags.itl_ms);
  return options;
}

}  // namespace penstock
