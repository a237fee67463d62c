#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/model/files/model_file.h"

namespace penstock {

// A model of any specification with random F32 weights, for shapes and options
// that no file at hand combines. No vocabulary, no template.
class RandomModel : public ModelFile {
 public:
  // `spec` lacks nothing but its content. Equal arguments give equal weights.
  RandomModel(ModelSpec spec, uint64_t seed);
  RandomModel(const RandomModel&) = delete;
  RandomModel& operator=(const RandomModel&) = delete;

  // Optional tensors that every layer has.
  struct Extras {
    bool biases = false;
    bool pre_norms = true;
    bool post_norms = false;
  };
  RandomModel(ModelSpec spec, uint64_t seed, const Extras& extras);

  const ModelSpec& spec() const override { return spec_; }
  const ModelWeights& weights() const override { return weights_; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  const std::string& chat_template() const override { return template_; }

 private:
  float Next();  // in [-1, 1)
  // Elements are middle + spread * [-1, 1).
  TensorView Tensor(int rows, int cols, float spread, float middle = 0);
  // A matrix whose products keep the size of what it multiplies.
  TensorView Matrix(int rows, int cols);
  std::vector<TensorView> Matrices(int count, int rows, int cols);
  TensorView Gain(int size);
  void AddHeads(LayerWeights& layer, const Extras& extras);
  void AddLatent(LayerWeights& layer);
  void AddExperts(LayerWeights& layer);

  const ModelSpec spec_;
  uint64_t state_;
  std::deque<std::vector<float>> values_;
  ModelWeights weights_;
  Vocabulary vocabulary_;
  std::string template_;
};

}  // namespace penstock
