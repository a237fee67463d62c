#include "tools/penstock/latency_summary.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/check.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

Json Percentiles(const std::vector<double>& values) {
  return {
      {"p50", Percentile(values, 50)},
      {"p90", Percentile(values, 90)},
      {"p99", Percentile(values, 99)},
      {"max",
       values.empty() ? 0.0 : *std::max_element(values.begin(), values.end())}};
}

int Tokens(const RequestRecord& record) {
  int tokens = 0;
  for (int count : record.frame_tokens) tokens += count;
  return tokens;
}

// Mean time of each token after the first; 0 when there is none.
double TimePerToken(const RequestRecord& record) {
  const int rest = Tokens(record) - record.frame_tokens.front();
  if (rest == 0) return 0;
  return (record.frame_ms.back() - record.frame_ms.front()) / rest;
}

bool Meets(const RequestRecord& record, const ServiceLevel& level) {
  const double ttft = record.frame_ms.front() - record.due_ms;
  return (level.ttft_ms == 0 || ttft <= level.ttft_ms) &&
         (level.itl_ms == 0 || TimePerToken(record) <= level.itl_ms);
}

}  // namespace

double Percentile(std::vector<double> values, double percent) {
  CHECK(percent > 0 && percent <= 100);
  if (values.empty()) return 0;
  const auto rank = static_cast<size_t>(
      std::ceil(percent / 100 * static_cast<double>(values.size())));
  const auto nth = values.begin() + static_cast<ptrdiff_t>(rank) - 1;
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

Json SummarizeLoad(const std::vector<RequestRecord>& records,
                   const ServiceLevel& level, double elapsed_ms) {
  std::vector<double> ttft, itl, tpot, e2e;
  int failed = 0, good = 0;
  int64_t output_tokens = 0, prompt_tokens = 0, cached_tokens = 0;
  for (const RequestRecord& record : records) {
    if (record.failed || record.frame_ms.empty()) {
      ++failed;
      continue;
    }
    output_tokens += Tokens(record);
    prompt_tokens += record.prompt_tokens;
    cached_tokens += record.cached_tokens;
    ttft.push_back(record.frame_ms.front() - record.due_ms);
    for (size_t i = 1; i < record.frame_ms.size(); ++i) {
      itl.push_back(record.frame_ms[i] - record.frame_ms[i - 1]);
    }
    if (Tokens(record) > record.frame_tokens.front()) {
      tpot.push_back(TimePerToken(record));
    }
    e2e.push_back(record.end_ms - record.due_ms);
    if (Meets(record, level)) ++good;
  }
  const double seconds = elapsed_ms / 1000;
  auto rate = [seconds](double count) {
    return seconds > 0 ? count / seconds : 0.0;
  };
  return {
      {"requests", records.size()},
      {"failed", failed},
      {"elapsed_s", seconds},
      {"prompt_tokens", prompt_tokens},
      {"output_tokens", output_tokens},
      {"hit_rate", prompt_tokens == 0 ? 0.0
                                      : static_cast<double>(cached_tokens) /
                                            static_cast<double>(prompt_tokens)},
      {"requests_per_s", rate(static_cast<double>(e2e.size()))},
      {"output_tokens_per_s", rate(static_cast<double>(output_tokens))},
      {"ttft_ms", Percentiles(ttft)},
      {"itl_ms", Percentiles(itl)},
      {"tpot_ms", Percentiles(tpot)},
      {"e2e_ms", Percentiles(e2e)},
      {"goodput_rps", rate(good)}};
}

}  // namespace penstock
