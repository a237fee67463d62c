#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/model/files/model_file.h"
#include "nlohmann/json.hpp"
#include "tools/penstock/command.h"
#include "tools/penstock/json_line.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

struct Options {
  std::string directory = "models";
  bool json = false;
};

int64_t Elements(const TensorView& tensor) {
  int64_t count = 1;
  for (int64_t extent : tensor.shape) count *= extent;
  return count;
}

struct WeightSummary {
  int64_t parameters = 0;
  std::string main_type;  // that most parameters are stored in
};

WeightSummary Summarize(const ModelFile& file) {
  std::map<TensorType, int64_t> by_type;
  auto add = [&by_type](const TensorView& tensor) {
    by_type[tensor.type] += Elements(tensor);
  };
  const ModelWeights& weights = file.weights();
  add(weights.token_embedding);
  for (const LayerWeights& layer : weights.layers) {
    for (const TensorView* tensor :
         {&layer.attention_norm, &layer.q, &layer.k, &layer.v, &layer.o,
          &layer.ffn_norm, &layer.gate, &layer.up, &layer.down}) {
      add(*tensor);
    }
  }
  add(weights.output_norm);
  if (!file.spec().tied_head) add(weights.output);

  WeightSummary summary;
  int64_t most = 0;
  for (const auto& [type, count] : by_type) {
    summary.parameters += count;
    if (count > most) {
      most = count;
      summary.main_type = std::string(Traits(type).name);
    }
  }
  return summary;
}

Json Describe(const std::filesystem::path& path) {
  Json model = {{"path", path.string()}};
  std::error_code error;
  model["bytes"] = std::filesystem::file_size(path, error);
  const absl::StatusOr<std::unique_ptr<ModelFile>> file =
      OpenModelFile(path.string());
  if (!file.ok()) {
    model["error"] = std::string(file.status().message());
    return model;
  }
  const ModelSpec& spec = (*file)->spec();
  const WeightSummary weights = Summarize(**file);
  model["name"] = spec.name;
  model["architecture"] = spec.architecture;
  model["parameters"] = weights.parameters;
  model["weight_type"] = weights.main_type;
  model["layers"] = spec.layers;
  model["context_length"] = spec.context_length;
  model["vocab_size"] = spec.vocab_size;
  model["has_chat_template"] = !(*file)->chat_template().empty();
  return model;
}

void Print(const Json& model) {
  if (model.contains("error")) {
    std::cout << model["path"].get<std::string>()
              << "\n  unusable: " << model["error"].get<std::string>() << "\n";
    return;
  }
  std::cout << absl::StrFormat(
      "%s\n  %s (%s), %dM parameters, %s, %d MiB, context %d%s\n",
      model["path"].get<std::string>(), model["name"].get<std::string>(),
      model["architecture"].get<std::string>(),
      model["parameters"].get<int64_t>() / 1'000'000,
      model["weight_type"].get<std::string>(),
      model["bytes"].get<int64_t>() >> 20, model["context_length"].get<int>(),
      model["has_chat_template"].get<bool>() ? ", chat template" : "");
}

absl::StatusOr<std::vector<std::filesystem::path>> ListModels(
    const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  if (error) {
    return absl::NotFoundError(absl::StrCat(
        directory, ": ", error.message(),
        "; tools/get_model brings a model, --dir names another folder"));
  }
  std::vector<std::filesystem::path> paths;
  for (; entries != std::filesystem::end(entries); entries.increment(error)) {
    if (error) break;
    if (entries->path().extension() == ".gguf") {
      paths.push_back(entries->path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::Status Models(const Options& options) {
  ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> paths,
                   ListModels(options.directory));
  Json models = Json::array();
  for (const std::filesystem::path& path : paths) {
    models.push_back(Describe(path));
    if (!options.json) Print(models.back());
  }
  if (options.json) {
    std::cout << JsonLine({{"models", models}}) << "\n";
  } else if (paths.empty()) {
    std::cout << "No GGUF file in " << options.directory
              << "; tools/get_model brings one.\n";
  }
  return absl::OkStatus();
}

}  // namespace

void AddModelsCommand(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("models", "The model files that are here.");
  auto options = std::make_shared<Options>();
  command->add_option("--dir", options->directory, "where to look");
  command->add_flag("--json", options->json, "one JSON document");
  command->callback(
      [options, &action] { action = [options] { return Models(*options); }; });
}

}  // namespace penstock
