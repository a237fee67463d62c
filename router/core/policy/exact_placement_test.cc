// The choice against a plain loop over all workers, by the formula of
// docs/routing.md.

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "router/core/policy/policy_fixture.h"

namespace penstock {
namespace {

constexpr uint64_t kPrompt = 5000;  // where its chain begins
constexpr double kNever = std::numeric_limits<double>::infinity();

class ExactPlacementTest : public PolicyFixture {
 protected:
  struct Worker {
    std::string name;
    bool prefill = false, decode = false, ready = true;
    int layout = 1, cached = 0, kept = 0, requests = 0;
    double ahead = 0, pressure = 0;
    WorkerPace pace;
  };

  int Draw(int most) {
    return static_cast<int>(draws_.Below(static_cast<uint64_t>(most) + 1));
  }

  // Of a machine like the assumed one, of others, or not known.
  StepCosts Costs() {
    const double prefill = paces_ ? 0.5 * (1 + Draw(2)) : 1;
    const double decode = paces_ ? 0.5 * (1 + Draw(2)) : 1;
    if (Draw(3) == 0) return {};
    return {.step = 2e-3 * prefill,
            .row = 0.7e-3 * prefill,
            .pair = 1e-7 * prefill,
            .sample = 1e-3 * decode};
  }

  // Few different loads and depths, so that there are ties.
  void AddWorkers(int count, int layouts, int owners_of_100) {
    for (int i = 0; i < count; ++i) {
      Worker& w = workers_.emplace_back();
      w.name = absl::StrCat("w", i);
      w.prefill = Draw(2) > 0;
      w.decode = !w.prefill || Draw(1) == 0;
      w.ready = Draw(9) > 0;
      w.layout = 1 + Draw(layouts - 1);
      WorkerInfo info = Info(w.name, w.prefill, w.decode);
      info.layout = LayoutId(w.layout);
      Add(info, w.ready ? WorkerHealth::kReady : WorkerHealth::kLoading);
      WorkerLoad load;
      load.active_requests = w.requests = 5 * Draw(2);
      load.queued_tokens = 500 * Draw(1);
      load.total_blocks = 100000;
      load.free_blocks = 100000 - 30000 * Draw(2);
      load.costs = Costs();
      w.pace = WorkEstimate().PaceOf(load.costs, {});
      Report(w.name, load,
             w.ready ? WorkerHealth::kReady : WorkerHealth::kLoading);
      const double used = 1 - load.free_blocks / 100000.0;
      w.pressure = used / (1 - used);
      w.ahead = absl::ToDoubleSeconds(WorkEstimate().Ahead(info, load, w.pace));
      if (Draw(99) >= owners_of_100) continue;
      const int blocks = 4 * (1 + Draw(3));
      Store(w.name, kPrompt, blocks);
      w.cached = blocks * kBlockTokens;
    }
  }

  int Cached(const Worker& w, int prompt) const {
    const int whole = (prompt - 1) / kBlockTokens * kBlockTokens;
    return std::max(std::min(w.cached, whole), std::min(w.kept, prompt - 1));
  }
  double Prefill(const Worker& w, int prompt) const {
    const int cached = Cached(w, prompt);
    return w.pace.prefill * cost_.PrefillSeconds(prompt - cached, cached);
  }
  double PrefillEnd(const Worker& w, int prompt) const {
    return w.ahead + Prefill(w, prompt);
  }
  std::vector<const Worker*> PartnersOf(const Worker& decode) const {
    std::vector<const Worker*> partners;
    for (const Worker& w : workers_) {
      if (w.ready && (w.prefill || w.kept > 0) && w.layout == decode.layout) {
        partners.push_back(&w);
      }
    }
    return partners;
  }
  double AloneTime(const Worker& d, int prompt, bool paired) const {
    const double prefill = Prefill(d, prompt);
    if (!paired || d.kept > 0) return prefill;
    if (!options_.spill_prefill) return kNever;
    return prefill * (1 + std::max(4, d.requests));
  }
  double PairTime(const Worker& d, int prompt) const {
    const int lacking = prompt - Cached(d, prompt);
    if (lacking < options_.local_prefill_tokens) return kNever;
    double best = kNever;
    for (const Worker* p : PartnersOf(d)) {
      best = std::min(best, PrefillEnd(*p, prompt));
    }
    return best + absl::ToDoubleSeconds(cost_.Transfer(
                      int64_t{lacking} * options_.kv_bytes_per_token));
  }
  double DecodeTime(const Worker& d, int prompt, int max_tokens) const {
    const double share =
        absl::ToDoubleSeconds(cost_.DecodeShare(max_tokens, prompt));
    const double pair = PairTime(d, prompt);
    return d.ahead + d.pace.decode * share * (1 + d.pressure) +
           std::min(pair, AloneTime(d, prompt, pair != kNever));
  }

  // Names of those whose cost is least.
  template <typename Cost>
  static std::set<std::string> Best(const std::vector<const Worker*>& of,
                                    Cost cost) {
    double least = kNever;
    for (const Worker* w : of) least = std::min(least, cost(*w));
    std::set<std::string> best;
    for (const Worker* w : of) {
      // The sums may be rounded in another order.
      if (cost(*w) <= least + 1e-12) best.insert(w->name);
    }
    return best;
  }

  void Compare(int prompt, int max_tokens);

  std::vector<Worker> workers_;
  SeededRandom draws_{11};
  bool paces_ = false;  // are workers of different ones?
  const CostModel cost_ = *CostModel::Create({});
  int ties_ = 0, handoffs_ = 0, alone_ = 0;
};

void ExactPlacementTest::Compare(int prompt, int max_tokens) {
  std::vector<const Worker*> decodes;
  for (const Worker& w : workers_) {
    if (w.decode && w.ready) decodes.push_back(&w);
  }
  if (decodes.empty()) return;
  const std::set<std::string> best = Best(decodes, [&](const Worker& w) {
    return DecodeTime(w, prompt, max_tokens);
  });
  ties_ += best.size() > 1;
  std::set<std::string> chosen;
  for (size_t i = 0; i < 30 * best.size(); ++i) {
    const auto placement = Place(prompt, kPrompt, max_tokens);
    ASSERT_TRUE(placement.ok()) << placement.status();
    const std::string& name = placement->decode.worker.name;
    ASSERT_TRUE(best.contains(name)) << name;
    chosen.insert(name);
    const Worker& d =
        **std::find_if(decodes.begin(), decodes.end(),
                       [&](const Worker* w) { return w->name == name; });
    EXPECT_EQ(placement->decode.cached_tokens, Cached(d, prompt));
    const double pair = PairTime(d, prompt);
    const bool alone = AloneTime(d, prompt, pair != kNever) <= pair;
    ASSERT_EQ(placement->prefill.has_value(), !alone);
    ++(alone ? alone_ : handoffs_);
    if (alone) continue;
    const std::set<std::string> partners = Best(
        PartnersOf(d), [&](const Worker& w) { return PrefillEnd(w, prompt); });
    ASSERT_TRUE(partners.contains(placement->prefill->worker.name));
  }
  // 30 draws for each: all of them are drawn, but for 1 in 10^11.
  EXPECT_EQ(chosen, best);
}

TEST_F(ExactPlacementTest, IsThatOfAPlainLoop) {
  for (int round = 0; round < 60; ++round) {
    options_.spill_prefill = round % 2 == 1;
    paces_ = round % 4 >= 2;
    AddWorkers(1 + Draw(round % 3 == 0 ? 8 : 150), 1 + round / 4 % 3,
               round % 5 * 25);
    for (int i = round % 4; i > 0; --i) {
      Worker& keeper = workers_[draws_.Below(workers_.size())];
      keeper.kept = std::max(keeper.kept, 40 * i);
      kept_.push_back({{keeper.name, Incarnation(1)}, keeper.kept});
    }
    for (int prompt : {1, 15, 16, 17, 100, 256, 257, 1000}) {
      Compare(prompt, 64);
      if (HasFatalFailure()) FAIL() << "in round " << round << ", " << prompt;
    }
    kept_.clear();
    for (const Worker& w : workers_) {
      registry_.Lose({w.name, Incarnation(1)}, absl::OkStatus());
    }
    workers_.clear();
    sequences_.clear();
  }
  EXPECT_GT(ties_, 50);
  EXPECT_GT(handoffs_, 1000);
  EXPECT_GT(alone_, 1000);
}

}  // namespace
}  // namespace penstock
