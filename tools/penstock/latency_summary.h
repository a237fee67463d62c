#pragma once

#include <vector>

#include "nlohmann/json.hpp"

namespace penstock {

// The nearest-rank percentile: the smallest value that at least `percent` of
// the values do not exceed; 0 without values. Precondition: 0 < percent <= 100.
double Percentile(std::vector<double> values, double percent);

// When things happened to one request, in milliseconds on one clock.
struct RequestRecord {
  // When it was due, not when it was sent: a server that stalls must not make
  // its own clients look patient.
  double due_ms = 0;
  bool failed = false;
  int prompt_tokens = 0;
  int cached_tokens = 0;          // of them, found in a prefix cache
  std::vector<double> frame_ms;   // arrival of each frame that had tokens
  std::vector<int> frame_tokens;  // tokens of each of those
  double end_ms = 0;
};

struct ServiceLevel {
  double ttft_ms = 0;  // 0: any
  double itl_ms = 0;   // 0: any; bounds a request's mean time per token
};

// The document of `penstock bench serve --json`. Times to first token, between
// tokens (gaps between frames), per output token (mean of a request after its
// first) and end to end, the share of their prompt tokens that were cached, of
// the requests that did not fail; rates over `elapsed_ms`.
nlohmann::json SummarizeLoad(const std::vector<RequestRecord>& records,
                             const ServiceLevel& level, double elapsed_ms);

}  // namespace penstock
