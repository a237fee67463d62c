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
#include "common/model/files/model_path.h"
#include "common/model/files/weight_visitor.h"
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

struct WeightSummary {
  int64_t parameters = 0;
  std::string main_type;  // that most parameters are stored in
};

WeightSummary Summarize(const ModelFile& file) {
  std::map<TensorType, int64_t> by_type;
  VisitTensors(file.weights(), file.spec().tied_head,
               [&by_type](const TensorView& tensor, TensorRole) {
                 by_type[tensor.type] += tensor.rows() * tensor.cols();
               });
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

// Of a file, or of all in a folder.
uint64_t BytesOf(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return std::filesystem::file_size(path, error);
  }
  uint64_t bytes = 0;
  std::filesystem::directory_iterator entries(path, error);
  for (; entries != std::filesystem::end(entries); entries.increment(error)) {
    if (error) break;
    if (entries->is_regular_file(error)) bytes += entries->file_size(error);
  }
  return bytes;
}

Json Describe(const std::filesystem::path& path) {
  Json model = {{"path", path.string()}};
  model["bytes"] = BytesOf(path);
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

// A GGUF file that is not a later part of a split one, or a folder with what a
// Hugging Face model begins with.
bool IsModel(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return std::filesystem::exists(path / "config.json", error);
  }
  return path.extension() == ".gguf" && !IsLaterGgufPart(path.string());
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
    if (IsModel(entries->path())) paths.push_back(entries->path());
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
    std::cout << "No model in " << options.directory
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
