#include "common/config/command_line.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/config/config_file.h"
#include "common/config/parse_flags.h"
#include "common/config/tenant_config.h"
#include "common/model/files/model_path.h"
#include "common/model/files/quantizer.h"
#include "common/model/kv_layout.h"
#include "protos/config.pb.h"

namespace penstock {
namespace {

constexpr absl::string_view kVersion = PENSTOCK_VERSION;

// What both kinds of binaries share, bound to one options struct.
template <typename Options>
void AddCommonFlags(CLI::App& app, Options& options, std::string& config) {
  app.add_option("--config", config, "Text-format file; flags win over it");
  app.add_option("--model", options.model,
                 "GGUF file or Hugging Face folder to serve");
  app.add_option("--model-name", options.model_name,
                 "Name that requests give; default: the file's or folder's");
  app.add_option("--weights", options.weights,
                 "Type that matrices are stored as on load, such as q8_0 or "
                 "q4_0; default: the file's. The same for all of a cluster");
  app.add_option("--kv-type", options.kv_type,
                 "Elements of KV: f16, bf16, fp8, int8 or int4; default: f16. "
                 "int8 holds 1.9 times the tokens of f16, int4 3.6 times. The "
                 "same for all of a cluster");
  app.add_option("--listen,--grpc", options.listen.grpc,
                 "host:port of gRPC; port 0: any free one");
  app.add_option("--metrics-listen,--metrics", options.listen.metrics,
                 "host:port of /metrics; empty: none");
  app.add_option("--cluster-key-file", options.cluster_key_file,
                 "File with the key that the cluster shares");
}

template <typename Config, typename Options>
void ApplyCommon(const Config& config, Options& options) {
  if (config.has_model()) options.model = config.model();
  if (config.has_model_name()) options.model_name = config.model_name();
  if (config.has_weights()) options.weights = config.weights();
  if (config.has_kv_type()) options.kv_type = config.kv_type();
  if (config.listen().has_grpc()) options.listen.grpc = config.listen().grpc();
  if (config.listen().has_metrics()) {
    options.listen.metrics = config.listen().metrics();
  }
  if (config.has_cluster_key_file()) {
    options.cluster_key_file = config.cluster_key_file();
  }
}

void ApplyHttp(const penstock::v1::HttpConfig& config, HttpOptions& http) {
  auto count = [](bool given, uint32_t value, int& target) {
    if (given) target = static_cast<int>(std::min<uint32_t>(value, 1u << 30));
  };
  auto duration = [](bool given, uint32_t millis, absl::Duration& target) {
    if (given) target = absl::Milliseconds(millis);
  };
  count(config.has_max_header_bytes(), config.max_header_bytes(),
        http.max_header_bytes);
  count(config.has_max_connections(), config.max_connections(),
        http.max_connections);
  count(config.has_max_queued_bytes(), config.max_queued_bytes(),
        http.max_queued_bytes);
  duration(config.has_idle_timeout_ms(), config.idle_timeout_ms(),
           http.idle_timeout);
  duration(config.has_header_timeout_ms(), config.header_timeout_ms(),
           http.header_timeout);
  duration(config.has_body_timeout_ms(), config.body_timeout_ms(),
           http.body_timeout);
  duration(config.has_write_timeout_ms(), config.write_timeout_ms(),
           http.write_timeout);
  http.require_api_key = config.require_api_key();
  http.trust_tenant_header = config.trust_tenant_header();
}

absl::Status Apply(const penstock::v1::RouterConfig& config,
                   RouterOptions& options) {
  ApplyCommon(config, options);
  if (config.listen().has_http()) options.listen.http = config.listen().http();
  ApplyHttp(config.http(), options.http);
  ApplyTenants(config.limits(), options);
  const auto& limits = config.limits();
  if (limits.has_max_message_bytes()) {
    options.max_message_bytes = static_cast<int>(
        std::min<uint32_t>(limits.max_message_bytes(), 1u << 30));
  }
  if (limits.has_max_concurrent_requests()) {
    options.max_concurrent_requests = limits.max_concurrent_requests();
  }
  if (limits.has_max_queued_requests()) {
    options.max_queued_requests = limits.max_queued_requests();
  }
  if (limits.has_max_timeout_ms()) {
    options.max_timeout = absl::Milliseconds(limits.max_timeout_ms());
  }
  if (limits.has_max_queue_age_ms()) {
    options.max_queue_age = absl::Milliseconds(limits.max_queue_age_ms());
  }
  if (config.tuning().has_local_prefill_tokens()) {
    options.local_prefill_tokens = config.tuning().local_prefill_tokens();
  }
  if (config.tuning().has_spill_prefill()) {
    options.spill_prefill = config.tuning().spill_prefill();
  }
  if (config.tuning().has_policy()) options.policy = config.tuning().policy();
  if (config.tuning().has_prefix_memory()) {
    ASSIGN_OR_RETURN(
        options.prefix_memory_bytes,
        ParseSize("tuning.prefix_memory", config.tuning().prefix_memory()));
  }
  if (config.tuning().has_worker_timeout_ms()) {
    options.worker_timeout =
        absl::Milliseconds(config.tuning().worker_timeout_ms());
  }
  return absl::OkStatus();
}

absl::Status Apply(const penstock::v1::WorkerConfig& config,
                   WorkerOptions& options) {
  ApplyCommon(config, options);
  if (config.has_name()) options.name = config.name();
  if (config.has_advertise()) options.advertise = config.advertise();
  if (config.has_data_listen()) options.data_listen = config.data_listen();
  if (config.has_data_advertise()) {
    options.data_advertise = config.data_advertise();
  }
  if (config.router_size() > 0) {
    options.routers.assign(config.router().begin(), config.router().end());
  }
  if (config.has_kv_memory()) {
    ASSIGN_OR_RETURN(options.kv_memory_bytes,
                     ParseSize("kv_memory", config.kv_memory()));
  }
  if (config.has_kv_host_memory()) {
    ASSIGN_OR_RETURN(options.kv_host_memory_bytes,
                     ParseSize("kv_host_memory", config.kv_host_memory()));
  }
  if (config.has_kv_disk()) options.kv_disk = config.kv_disk();
  if (config.has_kv_disk_bytes()) {
    ASSIGN_OR_RETURN(options.kv_disk_bytes,
                     ParseSize("kv_disk_bytes", config.kv_disk_bytes()));
  }
  if (config.has_kvstore()) options.kvstore = config.kvstore();
  if (config.has_weights_cache()) {
    options.weights_cache = config.weights_cache();
  }
  if (config.has_precision()) options.precision = config.precision();
  if (config.has_threads()) options.threads = config.threads();
  if (config.has_backend()) options.backend = config.backend();
  if (config.has_transport()) options.transport = config.transport();
  const auto& engine = config.engine();
  if (engine.has_max_sequences()) {
    options.max_sequences = engine.max_sequences();
  }
  if (engine.has_max_step_tokens()) {
    options.max_step_tokens = engine.max_step_tokens();
  }
  if (engine.has_itl_target_ms()) {
    options.itl_target = absl::Milliseconds(engine.itl_target_ms());
  }
  if (engine.has_max_queued_requests()) {
    options.max_queued_requests = engine.max_queued_requests();
  }
  return absl::OkStatus();
}

absl::Status OneOf(absl::string_view field, const std::string& value,
                   const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      field, " is \"", value, "\"; use one of ", absl::StrJoin(known, ", ")));
}

absl::Status InRange(absl::string_view field, int64_t value, int64_t low,
                     int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, "; it must be ", low, " to ", high));
}

template <typename Options>
absl::Status ValidateCommon(const Options& options) {
  if (options.model.empty()) {
    return absl::InvalidArgumentError(
        "model is missing; give --model PATH (tools/get_model brings one)");
  }
  RETURN_IF_ERROR(CheckListen(options.listen.grpc));
  if (!options.weights.empty()) {
    RETURN_IF_ERROR(QuantizedTypeOfName(options.weights).status());
  }
  if (!options.kv_type.empty()) {
    RETURN_IF_ERROR(ParseKvType(options.kv_type).status());
  }
  return InRange("max_queued_requests", options.max_queued_requests, 1,
                 1 << 20);
}

absl::Status ValidateHttp(const HttpOptions& http) {
  RETURN_IF_ERROR(
      InRange("http.max_header_bytes", http.max_header_bytes, 1024, 1 << 20));
  RETURN_IF_ERROR(
      InRange("http.max_connections", http.max_connections, 1, 1 << 20));
  RETURN_IF_ERROR(
      InRange("http.max_queued_bytes", http.max_queued_bytes, 1024, 1 << 30));
  for (const absl::Duration timeout : {http.idle_timeout, http.header_timeout,
                                       http.body_timeout, http.write_timeout}) {
    RETURN_IF_ERROR(InRange("http timeouts in ms",
                            absl::ToInt64Milliseconds(timeout), 1,
                            absl::ToInt64Milliseconds(absl::Hours(24))));
  }
  return absl::OkStatus();
}

absl::Status Validate(const RouterOptions& options) {
  RETURN_IF_ERROR(ValidateCommon(options));
  RETURN_IF_ERROR(ValidateHttp(options.http));
  RETURN_IF_ERROR(InRange("max_concurrent_requests",
                          options.max_concurrent_requests, 1, 1 << 20));
  if (options.max_queue_age <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        "limits.max_queue_age_ms is 0; nobody could wait: give the time after "
        "which waiting requests are refused");
  }
  RETURN_IF_ERROR(CheckTenants(options));
  RETURN_IF_ERROR(InRange("local_prefill_tokens", options.local_prefill_tokens,
                          0, 1 << 20));
  if (options.prefix_memory_bytes < uint64_t{1} << 20) {
    return absl::InvalidArgumentError(
        "prefix_memory is less than 1MiB; give at least that");
  }
  RETURN_IF_ERROR(OneOf("policy", options.policy,
                        {"prefix_aware", "least_load", "round_robin", "random",
                         "power_of_two", "session_sticky", "consistent_hash"}));
  return InRange("max_message_bytes", options.max_message_bytes, 1024, 1 << 30);
}

absl::Status Validate(const WorkerOptions& options) {
  RETURN_IF_ERROR(ValidateCommon(options));
  RETURN_IF_ERROR(
      OneOf("backend", options.backend,
            {"auto", "avx512", "avx2", "scalar", "oracle", "timer"}));
  RETURN_IF_ERROR(
      OneOf("precision", options.precision, {"fast", "default", "exact"}));
  RETURN_IF_ERROR(
      OneOf("transport", options.transport, {"auto", "shm", "tcp", "inproc"}));
  RETURN_IF_ERROR(InRange("threads", options.threads, 0, 1024));
  RETURN_IF_ERROR(InRange("host_workers", options.host_workers, 1, 1024));
  RETURN_IF_ERROR(InRange("max_sequences", options.max_sequences, 1, 4096));
  RETURN_IF_ERROR(InRange("itl_target_ms",
                          absl::ToInt64Milliseconds(options.itl_target), 0,
                          absl::ToInt64Milliseconds(absl::Hours(1))));
  return InRange("max_step_tokens", options.max_step_tokens, 1, 65536);
}

// Flags whose values are sizes, as they were given; empty: not.
struct SizeFlags {
  std::string kv_memory;
  std::string kv_host_memory;
  std::string kv_disk_bytes;
  std::string prefix_memory;
};

absl::Status ApplySizes(const SizeFlags& sizes, RouterOptions& options) {
  if (sizes.prefix_memory.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(options.prefix_memory_bytes,
                   ParseSize("prefix-memory", sizes.prefix_memory));
  return absl::OkStatus();
}

absl::Status ApplySizes(const SizeFlags& sizes, WorkerOptions& options) {
  const std::tuple<const char*, const std::string&, uint64_t&> all[] = {
      {"kv-memory", sizes.kv_memory, options.kv_memory_bytes},
      {"kv-host-memory", sizes.kv_host_memory, options.kv_host_memory_bytes},
      {"kv-disk-bytes", sizes.kv_disk_bytes, options.kv_disk_bytes}};
  for (const auto& [flag, text, bytes] : all) {
    if (text.empty()) continue;
    ASSIGN_OR_RETURN(bytes, ParseSize(flag, text));
  }
  return absl::OkStatus();
}

void AddWorkerFlags(CLI::App& app, WorkerOptions& options, SizeFlags& sizes) {
  app.add_option("--name", options.name, "Stable name of this worker");
  app.add_option("--advertise", options.advertise,
                 "host:port that others dial; default: what is listened on");
  app.add_option("--data-listen", options.data_listen,
                 "host:port of KV pages over TCP, numeric; port 0: any free "
                 "one");
  app.add_option("--data-advertise", options.data_advertise,
                 "Numeric host that others send pages to; default: the one "
                 "listened on");
  app.add_option("--router", options.routers,
                 "host:port of each router, separated by commas or given one "
                 "by one")
      ->delimiter(',');
  app.add_option("--kv-memory", sizes.kv_memory,
                 "Memory for KV blocks, e.g. 512MiB or 2GiB");
  app.add_option("--kv-host-memory", sizes.kv_host_memory,
                 "More memory, for KV blocks that nobody uses now; default: "
                 "none");
  app.add_option("--kv-disk", options.kv_disk,
                 "Directory for the same, which stays when the worker ends; "
                 "of use to the next only with the same --name and cluster "
                 "key");
  app.add_option("--kv-disk-bytes", sizes.kv_disk_bytes,
                 "How much of it this worker may fill, e.g. 8GiB");
  app.add_option("--kvstore", options.kvstore,
                 "host:port of a penstock-kvstore, which keeps the same for "
                 "all workers");
  app.add_option("--weights-cache", options.weights_cache,
                 "Folder that keeps weights as the kernels take them, for "
                 "faster starts and for all workers of the host in one piece "
                 "of memory; auto: penstock in the user's cache folder; off: "
                 "none");
  app.add_option("--threads", options.threads,
                 "Compute threads; 0: one for each core");
  app.add_option("--host-workers", options.host_workers,
                 "Worker processes on this host; threads spin only when "
                 "there are cores for all of them");
  app.add_option("--core-ledger", options.core_ledger,
                 "File through which worker processes of this host take turns "
                 "on cores that they share, made if missing: answers leave "
                 "most to prompts of others, within --itl-target-ms; default: "
                 "none, the kernel divides them");
  app.add_option("--backend", options.backend,
                 "auto, avx512, avx2, scalar or oracle");
  app.add_option("--precision", options.precision,
                 "Of the CPU backend's inputs: fast, default or exact; all of "
                 "a cluster alike");
  app.add_option("--transport", options.transport, "auto, shm, tcp or inproc");
  app.add_option("--max-sequences", options.max_sequences,
                 "Sequences in a step");
  app.add_option("--max-step-tokens", options.max_step_tokens,
                 "Rows in a step: decodes and prefill chunks together");
  app.add_option_function<int64_t>(
         "--itl-target-ms",
         [&options](int64_t millis) {
           options.itl_target = absl::Milliseconds(millis);
         },
         "Longest wait between tokens that a prompt beside them may cause: it "
         "is computed in smaller parts; 0: any")
      ->default_str(
          absl::StrCat(absl::ToInt64Milliseconds(options.itl_target)));
  app.add_option("--max-queued-requests", options.max_queued_requests,
                 "Requests that may wait");
}

// Parses twice: once for --config, and again so that flags win over the file.
template <typename Config, typename Options, typename AddFlags>
absl::StatusOr<CommandLine<Options>> Parse(const std::string& program,
                                           const std::string& about,
                                           const std::vector<std::string>& args,
                                           AddFlags add_flags) {
  CommandLine<Options> line;
  std::string config_path;
  for (bool file_read : {false, true}) {
    CLI::App app(about, program);
    app.set_version_flag("--version", absl::StrCat(program, " ", kVersion));
    AddCommonFlags(app, line.options, config_path);
    SizeFlags sizes;
    add_flags(app, line.options, sizes);
    ASSIGN_OR_RETURN(line.print, ParseFlags(app, program, args));
    if (line.print.has_value()) return line;
    RETURN_IF_ERROR(ApplySizes(sizes, line.options));
    if (config_path.empty()) break;
    if (file_read) break;
    Config config;
    RETURN_IF_ERROR(ReadConfigFile(config_path, config));
    line.options = Options();
    RETURN_IF_ERROR(Apply(config, line.options));
  }
  RETURN_IF_ERROR(Validate(line.options));
  if (line.options.model_name.empty()) {
    line.options.model_name = ModelNameOf(line.options.model);
  }
  return line;
}

}  // namespace

absl::StatusOr<CommandLine<RouterOptions>> ParseRouterCommandLine(
    const std::vector<std::string>& args) {
  return Parse<penstock::v1::RouterConfig, RouterOptions>(
      "penstock-router", "Places requests on workers and relays their tokens",
      args, [](CLI::App& app, RouterOptions& options, SizeFlags& sizes) {
        app.add_option("--http-listen,--http", options.listen.http,
                       "host:port of the OpenAI API over HTTP; port 0: any "
                       "free one; empty: none");
        app.add_option("--max-concurrent-requests",
                       options.max_concurrent_requests,
                       "Requests that may be served at once");
        app.add_option("--max-queued-requests", options.max_queued_requests,
                       "Requests that may wait for a place");
        app.add_option("--policy", options.policy,
                       "How workers are chosen: prefix_aware, least_load, "
                       "round_robin, random, power_of_two, session_sticky or "
                       "consistent_hash");
        app.add_option("--local-prefill-tokens", options.local_prefill_tokens,
                       "Prompts with fewer uncached tokens are prefilled by "
                       "the decode worker");
        app.add_option("--prefix-memory", sizes.prefix_memory,
                       "Memory for what is known of the workers' caches, e.g. "
                       "512MiB; default: 1GiB");
        app.add_flag("--spill-prefill,!--no-spill-prefill",
                     options.spill_prefill,
                     "With prefix_aware decode workers also prefill what is "
                     "predicted to cost less there (default)");
      });
}

absl::StatusOr<CommandLine<WorkerOptions>> ParseWorkerCommandLine(
    absl::string_view role, const std::vector<std::string>& args) {
  return Parse<penstock::v1::WorkerConfig, WorkerOptions>(
      absl::StrCat("penstock-", role),
      absl::StrCat("A ", role, " worker: computes and hands KV pages over"),
      args, [](CLI::App& app, WorkerOptions& options, SizeFlags& sizes) {
        AddWorkerFlags(app, options, sizes);
      });
}

absl::StatusOr<uint64_t> ParseSize(absl::string_view field,
                                   absl::string_view text) {
  absl::string_view digits = text;
  uint64_t unit = 1;
  static constexpr std::pair<absl::string_view, uint64_t> kUnits[] = {
      {"KiB", uint64_t{1} << 10},
      {"MiB", uint64_t{1} << 20},
      {"GiB", uint64_t{1} << 30}};
  for (const auto& [suffix, bytes] : kUnits) {
    if (absl::ConsumeSuffix(&digits, suffix)) {
      unit = bytes;
      break;
    }
  }
  uint64_t number = 0;
  uint64_t bytes = 0;
  if (!absl::SimpleAtoi(digits, &number) || number == 0 ||
      __builtin_mul_overflow(number, unit, &bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is \"", text,
                     "\"; give a whole number of bytes, or one with KiB, MiB "
                     "or GiB, such as 512MiB"));
  }
  return bytes;
}

absl::StatusOr<std::string> ReadClusterKey(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("cluster key file ", path, " cannot be read"));
  }
  constexpr size_t kMaxKeyBytes = 4096;
  std::string key(kMaxKeyBytes, '\0');
  file.read(key.data(), static_cast<std::streamsize>(key.size()));
  key.resize(static_cast<size_t>(file.gcount()));
  absl::StripTrailingAsciiWhitespace(&key);
  if (key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cluster key file ", path, " is empty"));
  }
  return key;
}

}  // namespace penstock
