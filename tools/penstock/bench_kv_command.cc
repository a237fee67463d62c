#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/env/random.h"
#include "nlohmann/json.hpp"
#include "tools/penstock/command.h"
#include "tools/penstock/json_line.h"
#include "tools/penstock/kv_bench.h"
#include "tools/trace/trace_file.h"

namespace penstock {
namespace {

struct Flags {
  std::string trace;  // empty: drawn lengths
  int longest = 0;
  KvSharingOptions sharing;
  bool json = false;
};

absl::StatusOr<std::vector<KvLength>> Lengths(const std::string& trace) {
  std::vector<KvLength> lengths;
  if (!trace.empty()) {
    ASSIGN_OR_RETURN(const std::vector<TraceRequest> requests,
                     ReadTraceFile(trace));
    for (const TraceRequest& request : requests) {
      lengths.push_back({request.input_tokens, request.output_tokens});
    }
    return lengths;
  }
  SeededRandom random(1);
  for (int i = 0; i < 1000; ++i) {
    lengths.push_back({1 + static_cast<int>(random.Below(2000)),
                       1 + static_cast<int>(random.Below(500))});
  }
  return lengths;
}

double Percent(int64_t part, int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

void Print(const KvFragmentation& memory, size_t requests) {
  const double used = static_cast<double>(memory.used) / memory.steps;
  std::cout << absl::StrFormat(
      "%d requests, %d tokens generated, KV of %.1f tokens at a time each\n"
      "                              reserved  wasted  at a time in 1M slots\n",
      requests, memory.steps, used);
  for (const KvFragmentation::Scheme& scheme : memory.schemes) {
    const double reserved = static_cast<double>(scheme.reserved) / memory.steps;
    std::cout << absl::StrFormat(
        "  %-26s %9.1f  %5.2f%%  %21.1f\n", scheme.name, reserved,
        100 - Percent(memory.used, scheme.reserved), (1 << 20) / reserved);
  }
}

void Print(const char* name, const KvSharingOptions& options,
           const KvSharing& sharing) {
  std::cout << absl::StrFormat(
      "%d %s of %d tokens behind a prompt of %d: %d blocks at most, %d "
      "without sharing (%.1f%%)\n",
      options.answers, name, options.length.output, options.length.prompt,
      sharing.peak_blocks, sharing.separate_blocks,
      Percent(sharing.peak_blocks, sharing.separate_blocks));
}

nlohmann::json Describe(const KvFragmentation& memory) {
  nlohmann::json json = {{"steps", memory.steps}, {"used", memory.used}};
  for (const KvFragmentation::Scheme& scheme : memory.schemes) {
    json["reserved"][scheme.name] = scheme.reserved;
  }
  return json;
}

nlohmann::json Describe(const KvSharing& sharing) {
  return {{"peak_blocks", sharing.peak_blocks},
          {"separate_blocks", sharing.separate_blocks}};
}

absl::Status Run(const Flags& flags) {
  ASSIGN_OR_RETURN(const std::vector<KvLength> lengths, Lengths(flags.trace));
  ASSIGN_OR_RETURN(const KvFragmentation memory,
                   MeasureFragmentation(lengths, flags.longest));
  KvSharingOptions options = flags.sharing;
  ASSIGN_OR_RETURN(const KvSharing samples, MeasureSharing(options));
  options.beams = true;
  ASSIGN_OR_RETURN(const KvSharing beams, MeasureSharing(options));
  if (flags.json) {
    std::cout << JsonLine({{"requests", lengths.size()},
                           {"fragmentation", Describe(memory)},
                           {"samples", Describe(samples)},
                           {"beams", Describe(beams)}})
              << "\n";
    return absl::OkStatus();
  }
  Print(memory, lengths.size());
  Print("samples", options, samples);
  Print("beams", options, beams);
  return absl::OkStatus();
}

}  // namespace

void AddBenchKvCommand(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = bench.add_subcommand(
      "kv",
      "KV memory in blocks beside contiguous memory, and what answers to one "
      "prompt share.");
  command->add_option("--trace", flags->trace,
                      "load to take lengths from; default: 1,000 drawn ones");
  command
      ->add_option("--longest", flags->longest,
                   "tokens that a request may have in all; 0: the longest has")
      ->check(CLI::Range(0, 1 << 24));
  command->add_option("--answers", flags->sharing.answers,
                      "samples, and beams, of one prompt");
  command->add_option("--prompt", flags->sharing.length.prompt, "its tokens");
  command->add_option("--output", flags->sharing.length.output,
                      "tokens of each answer");
  command->add_flag("--json", flags->json, "one JSON object");
  command->callback(
      [flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace penstock
