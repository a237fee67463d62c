#include "tools/penstock/engine_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

Json DescribeRow(const EngineBenchRow& row, const MachineLimits& limits) {
  const LeastTime least = LeastTimeOf(row.cost, limits);
  const double bytes = static_cast<double>(row.cost.bytes());
  const double operations = static_cast<double>(row.cost.ops());
  Json json = {
      {"depth", row.depth},
      {"tokens_per_s", row.tokens_per_second},
      {"steps", row.steps},
      {"seconds", row.seconds},
      {"bytes_per_step", bytes / row.steps},
      {"weight_bytes_per_step",
       static_cast<double>(row.cost.weight_bytes) / row.steps},
      {"kv_bytes_per_step", static_cast<double>(row.cost.kv_bytes) / row.steps},
      {"operations_per_step", operations / row.steps},
      {"bytes_per_s", bytes / row.seconds},
      {"operations_per_s", operations / row.seconds},
      {"share_of_read_limit", least.memory_s / row.seconds},
      {"share_of_compute_limit", least.compute_s / row.seconds},
      {"share_of_limit", least.seconds() / row.seconds},
      {"limited_by", least.memory_s > least.compute_s ? "memory" : "compute"}};
  json[row.decode ? "batch" : "tokens"] = row.size;
  return json;
}

std::string DescribeWork(const EngineBenchRow& row) {
  return row.decode
             ? absl::StrFormat("decode, batch %d at %d", row.size, row.depth)
             : absl::StrFormat("prefill %d", row.size);
}

}  // namespace

Json EngineReport::ToJson() const {
  Json document = {{"threads", threads},
                   {"prefill", Json::array()},
                   {"decode", Json::array()},
                   {"sampling", "greedy, part of every step"},
                   {"machine",
                    {{"cores", cores},
                     {"backend", backend},
                     {"kv_type", kv_type},
                     {"read_bytes_per_s", limits.read_bytes_per_s},
                     {"int8_operations_per_s", limits.int8_ops_per_s},
                     {"bfloat16_operations_per_s", limits.bfloat16_ops_per_s},
                     {"float_operations_per_s", limits.float_ops_per_s}}}};
  for (const EngineBenchRow& row : rows) {
    document[row.decode ? "decode" : "prefill"].push_back(
        DescribeRow(row, limits));
  }
  return document;
}

std::string EngineReport::ToTable() const {
  std::string text = absl::StrFormat(
      "%s, KV in %s, %d threads. Limits measured now: read %.1f GB/s, int8 "
      "%.0f,\nbf16 %.0f, f32 %.0f G operations/s. Steps include greedy "
      "sampling.\n\n",
      backend, kv_type, threads, limits.read_bytes_per_s / 1e9,
      limits.int8_ops_per_s / 1e9, limits.bfloat16_ops_per_s / 1e9,
      limits.float_ops_per_s / 1e9);
  absl::StrAppendFormat(&text, "%-23s %9s %8s %8s %7s %7s %6s  %s\n", "",
                        "tokens/s", "MB/step", "Gop/step", "GB/s", "Gop/s",
                        "limit", "share of it");
  for (const EngineBenchRow& row : rows) {
    const LeastTime least = LeastTimeOf(row.cost, limits);
    const double bytes = static_cast<double>(row.cost.bytes());
    const double operations = static_cast<double>(row.cost.ops());
    absl::StrAppendFormat(
        &text, "%-23s %9.1f %8.1f %8.2f %7.1f %7.1f %6s  %3.0f%%\n",
        DescribeWork(row), row.tokens_per_second, bytes / row.steps / 1e6,
        operations / row.steps / 1e9, bytes / row.seconds / 1e9,
        operations / row.seconds / 1e9,
        least.memory_s > least.compute_s ? "read" : "ops",
        least.seconds() / row.seconds * 100);
  }
  return text;
}

}  // namespace penstock
