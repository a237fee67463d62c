#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/model/files/tensor_view.h"
#include "common/model/model_spec.h"
#include "kernels/cpu/huge_buffer.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/weight_packer.h"
#include "kernels/host/thread_pool.h"

namespace penstock {

// An order of rows in which each head's rotated pairs are halves. A score is a
// sum over dimensions of query and key, so their order is free.
struct HeadOrder {
  int stride = 0;                  // rows of a head
  int first = 0;                   // of what rotates
  const RopeSpec* rope = nullptr;  // null: nothing rotates

  // Where row `row` of the packed matrix comes from.
  int64_t Source(int64_t row) const;
};

// All weights of a model on their way to one buffer: first each is added, then
// places are taken, then the job runs. Tensors that are absent leave their
// targets as they are. Targets must stay where they are; tensors outlive this.
class ModelPacker {
 public:
  // `bfloats`: as WeightPacker's.
  explicit ModelPacker(bool bfloats) : bfloats_(bfloats) {}

  void AddMatrix(const TensorView& tensor, PanelMatrix* target,
                 const TensorView& bias = {}, const HeadOrder& order = {});
  // In floats, whatever the type.
  void AddFloatMatrix(const TensorView& tensor, PanelMatrix* target);
  // Panels of `gate` and `up` in turn. Precondition: as many rows in both.
  void AddGated(const TensorView& gate, const TensorView& up,
                PanelMatrix* target);
  // Values plus `offset`.
  void AddVector(const TensorView& tensor, float offset, const float** target,
                 const HeadOrder& order = {});

  // Of what Run writes, given the tensors: changes with any size, place or
  // format.
  uint64_t LayoutId() const;
  // Takes the places of everything, twice as Carver says.
  void LayOut(Carver& carver);
  // Packs on all threads of the pool.
  void Run(ThreadPool* pool);

 private:
  struct Vector {
    const TensorView* tensor = nullptr;
    float offset = 0;
    HeadOrder order;
    int64_t size = 0;  // padded with zeros
    const float** target = nullptr;
  };
  void Add(WeightPacker packer, PanelMatrix* target);
  void WriteVectors();

  const bool bfloats_;
  std::vector<WeightPacker> packers_;
  std::vector<PanelMatrix*> targets_;  // of packers_
  std::vector<Vector> vectors_;
};

}  // namespace penstock
