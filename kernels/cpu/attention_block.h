#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "kernels/cpu/latent_attention.h"
#include "kernels/cpu/pass_state.h"

namespace penstock {

// Attention of a layer, from the residual stream back to it: projections,
// rotation, pages, softmax, output. Owns the buffers between them; keys and
// values lie in the arena. Used by all threads of one pass.
class AttentionBlock {
 public:
  explicit AttentionBlock(PassState* state);
  void LayOut(Carver& carver);
  // Rows of a sequence that one tile takes.
  int tile_rows() const { return tile_rows_; }

  // Before the threads of a step start.
  void Start();
  // Before the first layer; then a barrier.
  void PlaceRows(int thread);
  // Every row writes its keys and values. After the last layer's, only rows
  // whose logits are wanted go on, as rows from 0; returns how many.
  int Run(int thread, int layer);

 private:
  // What a thread needs for itself.
  struct ThreadScratch {
    float* scores = nullptr;      // [kMaxQueryTile][kAttentionSplit]
    float* attended = nullptr;    // [value_dim]
    AttentionState state, later;  // [queries of a tile]
    std::vector<const float*> query;
    std::vector<VisibleRange> visible;
  };
  // Some query heads of a KV head, with the rows of a tile.
  struct Unit {
    const AttentionTile* tile;
    int kv_head;
    Part heads;
  };

  void Project(int thread, int layer);
  void KeepSampledRows(int thread);
  void RotateAndStoreRows(int thread, int layer);
  void RotateAndStore(int layer, int row, Part kv_heads);
  void NormalizeHeads(const CpuLayer& weights, int row, Part kv_heads);
  Rotation RotationOf(int layer, int row) const;
  void AttendRows(int thread, int layer, const RowSet& set, bool store);
  void AttendUnit(ThreadScratch& scratch, int layer, const RowSet& set,
                  const Unit& unit);
  void AttendSplits(ThreadScratch& scratch, AttentionTask& task);
  void StoreAttended(int row, int head, const float* values);
  void FinishAttended(int thread, int layer, int rows);
  uint8_t* HeadPage(BlockIndex block, int layer, int kv_head) const;

  PassState& state_;
  const ModelSpec& spec_;
  const KvHeadLayout head_layout_;
  const int group_;       // query heads of a KV head
  const int unit_heads_;  // of them in a unit, at most
  const int tile_rows_;
  // Whether heads make whole blocks of the output's input, so that each is
  // quantised where it was computed.
  const bool store_heads_;
  std::unique_ptr<LatentAttention> latent_;  // null: without

  // Written in one phase of a layer, read in a later one.
  float* query_ = nullptr;            // [max_rows][q_width]
  float* key_ = nullptr;              // [max_rows][kv_width]
  float* value_ = nullptr;            // [max_rows][value_width]
  float* attended_values_ = nullptr;  // [max_rows][attended_width], or null
  Activations attended_;              // [max_rows][attended_width]
  // By ModelSpec::ropes: [max_rows][dimensions / 2].
  std::vector<std::vector<double>> speeds_;
  std::vector<float*> cosine_, sine_;
  std::vector<ThreadScratch> scratch_;       // [threads]
  std::vector<std::atomic<int>> next_unit_;  // [layers]
};

}  // namespace penstock
