#include "kernels/cpu/engine_bench.h"

#include <optional>
#include <utility>

#include "common/model/model_spec.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// Answers every step at once.
class IdleBackend : public Backend {
 public:
  explicit IdleBackend(std::function<void()> wake) : wake_(std::move(wake)) {
    caps_.max_rows = 100;
    caps_.max_sequences = 8;
  }
  const BackendCaps& caps() const override { return caps_; }
  const KvLayout& kv_layout() const override { return layout_; }
  void Submit(StepPlan plan) override {
    ++steps_;
    copies_ += static_cast<int>(plan.copies.size());
    result_ = StepResult();
    wake_();
  }
  std::optional<BackendEvent> Poll() override {
    return std::exchange(result_, std::nullopt);
  }
  int steps() const { return steps_; }
  int copies() const { return copies_; }

 private:
  std::function<void()> wake_;
  BackendCaps caps_;
  KvLayout layout_;
  std::optional<BackendEvent> result_;
  int steps_ = 0;
  int copies_ = 0;
};

// Rows as int8 operations, positions read as KV, a step as weights.
StepCost Count(const StepPlan& plan) {
  StepCost cost;
  cost.weight_bytes = 1;
  cost.int8_ops = plan.tokens.size();
  for (int position : plan.positions) cost.kv_bytes += position;
  cost.float_ops = plan.samples.size();
  return cost;
}

TEST(EngineBenchTest, CountsOneRunOfEachKind) {
  EngineBench bench;
  IdleBackend backend(bench.wake());
  const EngineBenchOptions options = {
      .prefill = {250}, .batches = {1, 8}, .depth = 20, .decode_steps = 4};
  const auto rows =
      bench.Run(backend, EngineBench::BlocksNeeded(options), options, Count);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_FALSE(rows[0].decode);
  EXPECT_EQ(rows[0].size, 250);
  EXPECT_EQ(rows[0].steps, 3);  // chunks of at most 100
  EXPECT_EQ(rows[0].cost.weight_bytes, 3u);
  EXPECT_EQ(rows[0].cost.int8_ops, 250u);
  EXPECT_EQ(rows[0].cost.kv_bytes, 250u * 249 / 2);
  EXPECT_EQ(rows[0].cost.float_ops, 1u);
  EXPECT_TRUE(rows[2].decode);
  EXPECT_EQ(rows[2].size, 8);
  EXPECT_EQ(rows[2].steps, 4);
  EXPECT_EQ(rows[2].cost.weight_bytes, 4u);
  EXPECT_EQ(rows[2].cost.int8_ops, 4u * 8);
  EXPECT_EQ(rows[2].cost.kv_bytes, 8u * (20 + 21 + 22 + 23));
  EXPECT_EQ(rows[2].cost.float_ops, 4u * 8);
  EXPECT_NEAR(rows[2].tokens_per_second * rows[2].seconds, 4 * 8, 1e-9);
  // A warm-up, three prompts, one history that is copied for all, and three
  // runs of each batch.
  EXPECT_EQ(backend.steps(), 1 + 3 * 3 + 2 + 3 * 4 + 3 * 4);
  EXPECT_EQ(backend.copies(), 7 * 2);
}

}  // namespace
}  // namespace penstock
