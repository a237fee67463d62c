#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/env/random.h"
#include "common/model/files/model_error.h"

namespace penstock {

// A Hugging Face folder in memory, as far as ReadHuggingFaceModel reads it.
struct FolderImage {
  struct Shard {
    std::string name;
    std::string bytes;
  };
  std::string config;
  std::string generation_config;
  std::string index;  // empty: none
  std::vector<Shard> shards;
};

// The folder on disk; dies when it is not there.
FolderImage ReadFolderImage(const std::string& path);

// Makes broken folders for ever: takes a valid one, and breaks a value of its
// configuration or index, a tensor's entry in a header, or bytes. Equal seeds
// give equal folders. Single-threaded.
class HfMutator {
 public:
  HfMutator(uint64_t seed, std::vector<FolderImage> seeds);

  FolderImage Next();

 private:
  SeededRandom random_;
  std::vector<FolderImage> seeds_;
};

// What any folder may do to the readers: reads it from allocations of exactly
// its size, and where it is accepted, checks what a reader relies on. Returns
// the error's code, nothing for an accepted folder; dies on a broken promise.
std::optional<ModelError> ExerciseFolder(const FolderImage& folder);

}  // namespace penstock
