#include "tools/penstock/kv_bench.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/model/kv_layout.h"
#include "tools/simulator/sim_cluster.h"

namespace penstock {

absl::StatusOr<KvFragmentation> MeasureFragmentation(
    absl::Span<const KvLength> lengths, int longest) {
  if (lengths.empty()) return absl::InvalidArgumentError("no requests");
  if (longest == 0) {
    for (const KvLength& length : lengths) {
      longest = std::max(longest, length.prompt + length.output);
    }
  }
  KvFragmentation result;
  int64_t blocks = 0, exact = 0, power = 0;
  for (const KvLength& length : lengths) {
    const int whole = std::min(length.prompt + length.output, longest);
    for (int tokens = std::min(length.prompt, whole - 1) + 1; tokens <= whole;
         ++tokens) {
      ++result.steps;
      result.used += tokens;
      blocks += BlocksFor(tokens) * kBlockTokens;
      exact += whole;
      power += std::bit_ceil(static_cast<uint32_t>(whole));
    }
  }
  result.schemes = {
      {absl::StrCat("blocks of ", kBlockTokens), blocks},
      {"contiguous, exact", exact},
      {"contiguous, power of two", power},
      {absl::StrCat("contiguous, ", longest), longest * result.steps}};
  return result;
}

absl::StatusOr<KvSharing> MeasureSharing(const KvSharingOptions& options) {
  const int tokens = options.length.prompt + options.length.output;
  if (options.length.prompt < 1 || options.length.output < 1 ||
      tokens > 1 << 16) {
    return absl::InvalidArgumentError(
        "prompt and output must be 1 or more, and 65536 at most together");
  }
  if (options.answers < 1 || options.answers > 16) {
    return absl::InvalidArgumentError("answers must be from 1 to 16");
  }
  KvSharing sharing;
  sharing.separate_blocks = int64_t{options.answers} * BlocksFor(tokens);
  SimClusterOptions cluster_options;
  cluster_options.both_roles = true;
  cluster_options.log = false;
  cluster_options.worker.recount = false;
  cluster_options.worker.context_length = tokens + 1;
  cluster_options.worker.blocks = static_cast<int>(2 * sharing.separate_blocks);
  SimCluster cluster(cluster_options);
  cluster.after_event = [&] {
    for (SimWorker* worker : cluster.Living()) {
      const BlockCounts counts = worker->core().pool().counts();
      sharing.peak_blocks = std::max<int64_t>(
          sharing.peak_blocks, counts.total() - counts.free - counts.cached);
    }
  };
  const SimClient* client =
      cluster.Submit(options.length.prompt, options.length.output,
                     [&](GenerateRequest& request) {
                       request.n = options.answers;
                       if (options.beams) request.beam.width = options.answers;
                     });
  if (client == nullptr) return cluster.refused();
  if (!cluster.RunUntilIdle(absl::Hours(1))) {
    return absl::InternalError("the simulated cluster does not come to an end");
  }
  if (!client->ended->ok()) return *client->ended;
  return sharing;
}

}  // namespace penstock
