#include <cstdint>
#include <iostream>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/model/kv_layout.h"
#include "nlohmann/json.hpp"
#include "tools/penstock/cache_bench.h"
#include "tools/penstock/command.h"
#include "tools/penstock/json_line.h"

namespace penstock {
namespace {

double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / whole;
}

void Print(const CacheBenchOptions& options, const CacheBenchResult& result) {
  std::cout << absl::StrFormat(
      "%d entries of %d tokens, %d requests, %.0f%% of them sharing %d system "
      "prompts of %d tokens\n"
      "                 hits      of  rate   a cache without end\n"
      "  requests   %8d %7d %4.1f%%  %4.1f%%\n"
      "  blocks     %8d %7d %4.1f%%  %4.1f%%\n"
      "  evicted    %8d\n",
      options.entries, kBlockTokens, result.requests, 100 * options.shared,
      options.system_prompts, options.system_tokens, result.hits,
      result.requests, 100 * result.hit_rate(),
      Share(result.most_hits, result.requests), result.hit_blocks,
      result.blocks, 100 * result.block_hit_rate(),
      Share(result.most_hit_blocks, result.blocks), result.evicted);
}

nlohmann::json Describe(const CacheBenchResult& result) {
  return {{"requests", result.requests},
          {"hits", result.hits},
          {"hit_rate", result.hit_rate()},
          {"blocks", result.blocks},
          {"hit_blocks", result.hit_blocks},
          {"block_hit_rate", result.block_hit_rate()},
          {"most_hits", result.most_hits},
          {"most_hit_blocks", result.most_hit_blocks},
          {"evicted", result.evicted}};
}

}  // namespace

void AddBenchCacheCommand(CLI::App& bench, Action& action) {
  struct Flags {
    CacheBenchOptions options;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  CacheBenchOptions& options = flags->options;
  CLI::App* command = bench.add_subcommand(
      "cache", "The prefix cache's hit rate when prompts share beginnings.");
  command->add_option("--entries", options.entries, "blocks of the pool");
  command->add_option("--requests", options.requests, "how many");
  command->add_option("--shared", options.shared,
                      "share of requests with a system prompt");
  command->add_option("--system-prompts", options.system_prompts,
                      "how many there are");
  command->add_option("--system-tokens", options.system_tokens,
                      "of each; other requests have as many of their own");
  command->add_option("--tail-tokens", options.tail_tokens,
                      "of each request alone");
  command->add_option("--seed", options.seed, "of the requests");
  command->add_flag("--json", flags->json, "one JSON object");
  command->callback([flags, &action] {
    action = [flags]() -> absl::Status {
      const auto result = RunCacheBench(flags->options);
      if (!result.ok()) return result.status();
      if (flags->json) {
        std::cout << JsonLine(Describe(*result)) << "\n";
      } else {
        Print(flags->options, *result);
      }
      return absl::OkStatus();
    };
  });
}

}  // namespace penstock
