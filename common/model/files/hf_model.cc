#include "common/model/files/hf_model.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/files/hf_spec.h"
#include "common/model/files/json_config.h"
#include "common/model/files/json_document.h"
#include "common/model/files/safetensors_reader.h"
#include "common/model/files/weight_binder.h"

namespace penstock {
namespace {

constexpr JsonLimits kConfigLimits = {.max_bytes = 4 << 20, .max_depth = 16};
// DeepSeek-V3's is 9 MB.
constexpr JsonLimits kIndexLimits = {.max_bytes = 32 << 20, .max_depth = 4};
constexpr char kMap[] = "weight_map";

// Tensor name -> name of the file that has it.
absl::StatusOr<std::map<std::string, std::string>> ReadIndex(
    const FileBytes& index) {
  const ModelErrorMaker errors(index.path);
  ASSIGN_OR_RETURN(Json json,
                   ParseJsonObject(index.text(), kIndexLimits, errors));
  auto it = json.find(kMap);
  if (it == json.end()) {
    return errors.Make(
        ModelError::kMissingKey,
        {.field = kMap, .found = "no such key", .expected = "it"});
  }
  std::map<std::string, std::string> places;
  if (it->is_object()) {
    for (const auto& [tensor, file] : it->items()) {
      if (!file.is_string()) break;
      places.emplace(tensor, file.get<std::string>());
    }
  }
  if (!it->is_object() || places.size() != it->size() || places.empty()) {
    return errors.Make(ModelError::kKeyType,
                       {.field = kMap,
                        .found = "another value",
                        .expected = "an object of names of tensors and files"});
  }
  return places;
}

absl::Status CheckShardName(const std::string& name,
                            const ModelErrorMaker& errors) {
  constexpr size_t kMaxBytes = 200;
  bool plain = !name.empty() && name.size() <= kMaxBytes && name[0] != '.' &&
               absl::EndsWith(name, ".safetensors");
  for (char c : name) {
    plain = plain && absl::ascii_isgraph(static_cast<unsigned char>(c)) &&
            c != '/' && c != '\\';
  }
  if (plain) return absl::OkStatus();
  return errors.Make(ModelError::kShardName,
                     {.field = kMap,
                      .found = QuoteForError(name),
                      .expected = "a name NAME.safetensors beside the index"});
}

absl::string_view FileName(absl::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// The tensors of all shards; with an index, each where it says.
absl::StatusOr<TensorMap> ReadShards(const HuggingFaceFiles& files) {
  std::map<std::string, std::string> places;
  if (!files.index.bytes.empty()) {
    ASSIGN_OR_RETURN(places, ReadIndex(files.index));
  }
  TensorMap all;
  for (const FileBytes& shard : files.shards) {
    const ModelErrorMaker errors(shard.path);
    ASSIGN_OR_RETURN(TensorMap tensors,
                     ReadSafetensors(shard.bytes, shard.path));
    for (auto& [name, view] : tensors) {
      const std::string field = absl::StrCat("tensor ", QuoteForError(name));
      if (!all.emplace(name, std::move(view)).second) {
        return errors.Make(ModelError::kDuplicateTensor,
                           {.field = field,
                            .found = "the name in another shard, too",
                            .expected = "each name once"});
      }
      if (files.index.bytes.empty()) continue;
      auto place = places.find(name);
      if (place == places.end() || place->second != FileName(shard.path)) {
        return errors.Make(
            ModelError::kShardMap,
            {.field = field,
             .found = "it in this shard",
             .expected = place == places.end() ? "a tensor that the index lists"
                                               : QuoteForError(place->second)});
      }
      places.erase(place);
    }
  }
  if (!places.empty()) {
    return ModelErrorMaker(files.index.path)
        .Make(ModelError::kShardMap,
              {.field = absl::StrCat("tensor ",
                                     QuoteForError(places.begin()->first)),
               .found = "no such tensor in its shard",
               .expected = absl::StrCat(
                   "it in ", QuoteForError(places.begin()->second))});
  }
  return all;
}

// Layers that only predict several tokens at once, beyond the model's own.
absl::Status DropExtraLayers(const JsonConfig& config, int layers,
                             TensorMap& tensors) {
  constexpr IntegerRange kExtra = {0, 64};
  ASSIGN_OR_RETURN(int64_t extra,
                   config.IntegerOr("num_nextn_predict_layers", kExtra, 0));
  for (int64_t i = layers; i < layers + extra; ++i) {
    const std::string prefix = absl::StrCat("model.layers.", i, ".");
    auto it = tensors.lower_bound(prefix);
    while (it != tensors.end() && absl::StartsWith(it->first, prefix)) {
      it = tensors.erase(it);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ShardNames(const FileBytes& index) {
  const ModelErrorMaker errors(index.path);
  ASSIGN_OR_RETURN(auto places, ReadIndex(index));
  std::set<std::string> names;
  for (const auto& [tensor, file] : places) {
    RETURN_IF_ERROR(CheckShardName(file, errors));
    names.insert(file);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

absl::StatusOr<ModelContent> ReadHuggingFaceModel(
    const HuggingFaceFiles& files) {
  const ModelErrorMaker errors(files.config.path);
  ASSIGN_OR_RETURN(Json json,
                   ParseJsonObject(files.config.text(), kConfigLimits, errors));
  const JsonConfig config(json, errors);
  ASSIGN_OR_RETURN(const ModelFamily* family, ReadHuggingFaceFamily(config));
  ASSIGN_OR_RETURN(TensorMap tensors, ReadShards(files));
  ModelContent content;
  ASSIGN_OR_RETURN(content.spec,
                   ReadHuggingFaceSpec(config, *family,
                                       !tensors.contains("lm_head.weight")));
  content.spec.name = files.name;
  RETURN_IF_ERROR(DropExtraLayers(config, content.spec.layers, tensors));
  // An error about a tensor names the shard where there is one only.
  const ModelErrorMaker weight_errors(
      files.shards.size() == 1 ? files.shards[0].path : files.index.path);
  ASSIGN_OR_RETURN(BoundWeights bound,
                   BindWeights(tensors, TensorNames::kHuggingFace, *family,
                               weight_errors, content.spec));
  content.weights = std::move(bound.weights);
  content.derived = std::move(bound.derived);
  return content;
}

absl::StatusOr<std::vector<TokenId>> ReadEndTokens(
    const HuggingFaceFiles& files, int vocab_size) {
  constexpr char kKey[] = "eos_token_id";
  for (const FileBytes* file : {&files.generation_config, &files.config}) {
    if (file->bytes.empty()) continue;
    const ModelErrorMaker errors(file->path);
    ASSIGN_OR_RETURN(Json json,
                     ParseJsonObject(file->text(), kConfigLimits, errors));
    const JsonConfig fields(json, errors);
    if (!fields.Has(kKey)) continue;
    ASSIGN_OR_RETURN(std::vector<int64_t> ids,
                     fields.Integers(kKey, {INT64_MIN, INT64_MAX}));
    std::vector<TokenId> ends;
    for (int64_t id : ids) {
      if (id < 0 || id >= vocab_size) {
        return fields.Error(ModelError::kTokenId, kKey, absl::StrCat(id),
                            absl::StrCat("0 to ", vocab_size - 1));
      }
      ends.push_back(static_cast<TokenId>(id));
    }
    return ends;
  }
  return std::vector<TokenId>();
}

}  // namespace penstock
