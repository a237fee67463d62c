#include <memory>
#include <string>

#include "tools/penstock/cluster_options.h"
#include "tools/penstock/command.h"
#include "tools/penstock/local_cluster.h"
#include "tools/penstock/one_process.h"

namespace penstock {

void AddUpCommand(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("up", "A cluster in this terminal, until Ctrl-C.");
  auto options = std::make_shared<ClusterOptions>();
  command
      ->add_option("model", options->model, "GGUF file or Hugging Face folder")
      ->required();
  command->add_option("--model-name", options->model_name,
                      "served name; default: the file's");
  command->add_option("--weights", options->weights,
                      "type that matrices are stored as on load, such as "
                      "q8_0 or q4_0; default: the file's");
  const auto workers = CLI::Range(1, ClusterOptions::kMaxWorkers);
  command->add_option("--prefill", options->prefill, "prefill workers")
      ->check(workers);
  command->add_option("--decode", options->decode, "decode workers")
      ->check(workers);
  CLI::Option* routers =
      command
          ->add_option("--routers", options->routers,
                       "routers; all but the first listen at free ports")
          ->check(CLI::Range(1, ClusterOptions::kMaxRouters));
  command
      ->add_flag("--one-process", options->one_process,
                 "everything in this process: one worker of both kinds")
      ->excludes(routers);
  command
      ->add_option("--transport", options->transport,
                   "how KV moves between workers")
      ->check(CLI::IsMember({"auto", "inproc", "shm", "tcp"}));
  command->add_option("--grpc", options->grpc,
                      "where clients call; port 0: any free one");
  command->add_option("--http", options->http,
                      "where OpenAI clients call; port 0: any free one; "
                      "empty: none");
  command->add_option("--metrics", options->metrics,
                      "the router's metrics, which HTTP serves too; port 0: "
                      "any free one");
  command->add_option("--router-config", options->router_config,
                      "the router's --config, for limits of all kinds");
  command->add_option("--threads", options->threads,
                      "compute threads of the host; 0: its cores");
  command->add_flag("--core-turns,!--no-core-turns", options->core_turns,
                    "workers that share cores take turns: answers leave most "
                    "to prompts, within --itl-target-ms; without, the kernel "
                    "divides the cores; default: with");
  command->add_option("--kv-memory", options->kv_memory,
                      "KV memory of each worker, such as 512MiB");
  command
      ->add_option("--kv-type", options->kv_type,
                   "elements of KV: f16, bf16, fp8, int8 (1.9 times the "
                   "tokens of f16) or int4 (3.6 times); default: f16")
      ->check(CLI::IsMember({"f16", "f32", "bf16", "fp8", "int8", "int4"}));
  command->add_option("--kv-host-memory", options->kv_host_memory,
                      "more memory of each worker, for KV that nobody uses "
                      "now");
  command->add_option("--kv-disk", options->kv_disk,
                      "directory for the same, which stays for the next time; "
                      "the cluster's key is kept there, too");
  command->add_option("--kv-disk-bytes", options->kv_disk_bytes,
                      "how much of it each worker may fill, such as 8GiB");
  command
      ->add_option("--kvstore", options->kvstore,
                   "host:port of a penstock-kvstore, which keeps the same for "
                   "all workers; with nothing behind it: starts one")
      ->expected(0, 1)
      ->default_str(ClusterOptions::kOwnStore);
  command->add_option("--kvstore-memory", options->kvstore_memory,
                      "memory of the store that is started");
  command->add_option("--kvstore-disk", options->kvstore_disk,
                      "directory of the store that is started; the cluster's "
                      "key is kept there, too");
  command->add_option("--weights-cache", options->weights_cache,
                      "folder that keeps weights as the kernels take them, "
                      "for faster starts; auto: penstock in the user's cache "
                      "folder; off: none");
  command->add_option("--cluster-key-file", options->cluster_key_file,
                      "key that the cluster shares; made if missing; default: "
                      "a new one each time");
  command->add_option("--backend", options->backend,
                      "auto, or what `penstock-decode --help` lists");
  command
      ->add_option("--itl-target-ms", options->itl_target_ms,
                   "longest wait between tokens that a prompt beside them may "
                   "cause: it is computed in smaller parts; 0: any; default 50")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--precision", options->precision,
                   "of the CPU backend's inputs: fast takes a quarter less "
                   "arithmetic than default, exact half more")
      ->check(CLI::IsMember({"fast", "default", "exact"}));
  command->add_option("--policy", options->policy,
                      "how the router chooses workers, as `penstock-router "
                      "--help` lists; default prefix_aware");
  command
      ->add_option("--local-prefill-tokens", options->local_prefill_tokens,
                   "decode itself prefills prompts with fewer uncached "
                   "tokens; default 16")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--start-timeout", options->start_timeout_seconds,
                      "seconds until everything must be ready");
  command->add_option("--drain-timeout", options->drain_timeout_seconds,
                      "seconds for running requests to end after Ctrl-C");
  command->add_flag("--json", options->json,
                    "one JSON document when everything is ready");
  command->callback([options, &action] {
    action = [options] {
      return options->one_process ? RunInOneProcess(*options)
                                  : LocalCluster(*options).Run();
    };
  });
}

}  // namespace penstock
