#include "tools/simulator/trace/trace_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 0
                    : static_cast<double>(part) / static_cast<double>(whole);
}

double Microseconds(const TraceCost& cost, int64_t count) {
  return cost.cpu_seconds * 1e6 /
         static_cast<double>(std::max<int64_t>(count, 1));
}

Json Percentiles(const DurationHistogram& histogram) {
  auto ms = [](absl::Duration d) { return absl::ToDoubleMilliseconds(d); };
  return {{"p50", ms(histogram.Percentile(50))},
          {"p90", ms(histogram.Percentile(90))},
          {"p99", ms(histogram.Percentile(99))},
          {"max", ms(histogram.max())}};
}

std::string Row(const char* name, const DurationHistogram& histogram) {
  const Json p = Percentiles(histogram);
  return absl::StrFormat("%-22s%12.1f%12.1f%12.1f%12.1f\n", name,
                         p["p50"].get<double>(), p["p90"].get<double>(),
                         p["p99"].get<double>(), p["max"].get<double>());
}

}  // namespace

Json TraceReportJson(const TraceReport& report, const TraceCost& cost) {
  return {
      {"requests", report.requests},
      {"finished", report.finished},
      {"failures", report.failures},
      {"elapsed_s", absl::ToDoubleSeconds(report.elapsed)},
      {"prompt_tokens", report.prompt_tokens},
      {"output_tokens", report.output_tokens},
      {"ttft_ms", Percentiles(report.ttft)},
      {"itl_ms", Percentiles(report.itl)},
      {"mean_itl_ms", Percentiles(report.mean_itl)},
      {"e2e_ms", Percentiles(report.e2e)},
      {"good", report.good},
      {"goodput_rps", report.goodput()},
      {"hit_rate_trace_blocks", Share(report.cached_runs, report.runs)},
      {"hit_rate_kv_blocks", Share(report.cached_blocks, report.blocks)},
      {"hit_rate_tokens", Share(report.cached_tokens, report.prompt_tokens)},
      {"bytes_moved", report.bytes_moved},
      {"digest", absl::StrFormat("%016x", report.digest)},
      {"cost",
       {{"wall_s", cost.wall_seconds},
        {"cpu_s", cost.cpu_seconds},
        {"events", report.events},
        {"steps", report.steps},
        {"us_per_event", Microseconds(cost, report.events)},
        {"us_per_request", Microseconds(cost, report.requests)},
        {"us_per_token", Microseconds(cost, report.output_tokens)},
        {"peak_rss_bytes", cost.peak_bytes}}}};
}

std::string TraceReportText(const TraceReport& report, const TraceCost& cost) {
  std::string text = absl::StrFormat(
      "%d requests, %d finished, %.1f s of virtual time, %.1f requests/s\n",
      report.requests, report.finished, absl::ToDoubleSeconds(report.elapsed),
      static_cast<double>(report.finished) /
          std::max(1e-9, absl::ToDoubleSeconds(report.elapsed)));
  for (const auto& [why, count] : report.failures) {
    absl::StrAppendFormat(&text, "  %d ended with: %s\n", count, why);
  }
  absl::StrAppendFormat(&text, "\n%-22s%12s%12s%12s%12s\n", "ms", "p50", "p90",
                        "p99", "max");
  text += Row("time to first token", report.ttft);
  text += Row("between tokens", report.itl);
  text += Row("mean of a request", report.mean_itl);
  text += Row("end to end", report.e2e);
  absl::StrAppendFormat(
      &text, "\ngoodput   %.2f requests/s, %.1f%% of all within the levels\n",
      report.goodput(), 100 * Share(report.good, report.requests));
  absl::StrAppendFormat(
      &text,
      "hit rate  %.2f%% of the trace's 512-token blocks, %.2f%% of KV blocks\n",
      100 * Share(report.cached_runs, report.runs),
      100 * Share(report.cached_blocks, report.blocks));
  absl::StrAppendFormat(
      &text, "tokens    %d of prompts, %d generated, %.1f GB of KV moved\n",
      report.prompt_tokens, report.output_tokens,
      static_cast<double>(report.bytes_moved) / 1e9);
  absl::StrAppendFormat(
      &text,
      "cost      %.1f s (%.1f s of CPU): %d events of %.2f us, %.0f us a "
      "request, %.2f us a token; peak %.2f GB\n",
      cost.wall_seconds, cost.cpu_seconds, report.events,
      Microseconds(cost, report.events), Microseconds(cost, report.requests),
      Microseconds(cost, report.output_tokens),
      static_cast<double>(cost.peak_bytes) / 1e9);
  absl::StrAppendFormat(&text, "digest    %016x\n", report.digest);
  return text;
}

}  // namespace penstock
