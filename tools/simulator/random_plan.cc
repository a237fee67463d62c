#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/env/random.h"
#include "tools/simulator/sim_plan.h"

namespace penstock {
namespace {

// What a seed becomes. Whole microseconds and hundredths everywhere, so that a
// plan's text says exactly what the plan does.
class PlanMaker {
 public:
  explicit PlanMaker(uint64_t seed) : random_(seed) {
    plan_.cluster.seed = seed;
  }

  SimPlan Make() {
    MakeCluster();
    MakeRequests();
    MakeFaults();
    AddRouters();
    return std::move(plan_);
  }

 private:
  int Between(int least, int most) {
    return least + static_cast<int>(random_.Below(most - least + 1));
  }
  bool OneIn(int n) { return random_.Below(n) == 0; }
  template <typename T, size_t kSize>
  T OneOf(const T (&choices)[kSize]) {
    return choices[random_.Below(kSize)];
  }
  absl::Duration Micros(int64_t least, int64_t most) {
    return absl::Microseconds(least + random_.Below(most - least + 1));
  }

  void MakeCluster();
  void AddWorker(std::string name, WorkerRoles roles);
  SimTierOptions MakeTier();
  void MakeRequests();
  SimRequest MakeRequest();
  void AskForMore(SimRequest& request);
  void MakeFaults();
  void AddRouters();
  Fault MakeFault(FaultKind kind);
  std::string Worker() { return hosts_[random_.Below(hosts_.size())]; }

  SeededRandom random_;
  SimPlan plan_;
  std::vector<std::string> hosts_;  // workers
  int least_blocks_ = 0;
  int machines_ = 1;
  bool modelled_ = false;  // steps cost what a cost model says
  bool validates_ = true;  // what comes by TCP is looked at before it lands
  bool tiers_ = false;     // workers have one below their pool
  absl::Duration lease_;   // of handoffs; zero: the usual one
  absl::Duration load_;    // over which requests come
};

void PlanMaker::MakeCluster() {
  SimClusterOptions& cluster = plan_.cluster;
  // Small clusters are as likely as large ones: in them everything meets.
  constexpr int kSizes[] = {1, 1, 2, 2, 3, 4, 6, 8};
  const int prefills = OneOf(kSizes);
  const int decodes = OneOf(kSizes);
  // What no pool holds any more is asked of the tiers.
  tiers_ = OneIn(3);
  least_blocks_ = Between(24, tiers_ ? 50 : 120);
  machines_ = OneIn(2) ? 1 : Between(2, 4);
  validates_ = !OneIn(5);
  modelled_ = OneIn(6);
  // Short ones run out while something is held up for less than a second.
  if (OneIn(4)) lease_ = Micros(300'000, 3'000'000);
  for (int i = 0; i < prefills; ++i) {
    AddWorker(absl::StrCat("prefill", i), {true, OneIn(8)});
  }
  for (int i = 0; i < decodes; ++i) {
    AddWorker(absl::StrCat("decode", i), {OneIn(8), true});
  }
  cluster.latency = Micros(50, 3000);
  if (OneIn(3)) {
    cluster.page_bytes = 1 << 20;
    cluster.bytes_per_second = Between(5, 20) * 1e8;
  }
  cluster.any_place = OneIn(3);
  cluster.spill_prefill = OneIn(2);
  cluster.router.max_attempts = Between(2, 6);
  if (OneIn(4)) {
    cluster.router.max_running = Between(4, 16);
    cluster.router.max_queued = Between(0, 16);
  }
}

void PlanMaker::AddWorker(std::string name, WorkerRoles roles) {
  SimWorkerOptions worker;
  worker.key.name = std::move(name);
  worker.roles = roles;
  worker.blocks = least_blocks_ + (OneIn(2) || tiers_ ? 0 : Between(0, 60));
  if (OneIn(4)) {
    worker.backend.ranks = Between(2, 4);
    worker.backend.rank_spread = Between(0, 100) / 100.0;
  }
  worker.backend.modelled = modelled_;
  if (OneIn(4)) worker.cache_events = Between(0, 40);
  if (OneIn(3)) worker.engine.itl_target = Micros(500, 20000);
  if (OneIn(4)) {
    worker.backend.max_rows = Between(16, 128);
    worker.backend.max_sequences = Between(2, 16);
  }
  worker.machine = absl::StrCat("m", Between(1, machines_));
  // In every cluster all can reach each other somehow.
  worker.transports.emplace_back(TransportKind::kTcp);
  if (OneIn(2)) {
    worker.transports.emplace_back(TransportKind::kShm);
    worker.transports.back().preference = SimPreference(TransportKind::kShm);
  }
  if (OneIn(4)) {
    // Of those that share it, some have the transport.
    worker.process = absl::StrCat("process-of-", worker.machine);
    worker.transports.emplace_back(TransportKind::kInproc);
    worker.transports.back().preference = SimPreference(TransportKind::kInproc);
  }
  worker.transports[0].receiver_validates = validates_;
  if (tiers_ && !OneIn(4)) worker.tier = MakeTier();
  if (lease_ > absl::ZeroDuration()) {
    worker.handoff.lease = lease_;
    worker.handoff.renew_every = absl::Floor(lease_ / 3, absl::Microseconds(1));
  }
  hosts_.push_back(worker.key.name);
  plan_.cluster.workers.push_back(std::move(worker));
}

// Some are good, the others have a few ways of going wrong. A page takes
// between a tenth of what computing it takes and ten times as long.
SimTierOptions PlanMaker::MakeTier() {
  SimTierOptions tier;
  tier.pages = OneIn(3) ? Between(4, 40) : 1000;
  tier.wait = Micros(10, OneIn(4) ? 20'000 : 1000);
  tier.each = Micros(30, OneIn(2) ? 1500 : 300);
  if (OneIn(2)) tier.foresight = Between(1, 300) / 100.0;
  tier.asks = OneIn(4);
  tier.picky = OneIn(4);
  if (OneIn(3)) return tier;
  const auto share = [this] { return OneIn(2) ? Between(1, 30) / 100.0 : 0; };
  tier.missing = share();
  tier.fails = share();
  tier.corrupt = share();
  tier.confused = share();
  if (OneIn(4)) tier.late = Between(1, 10) / 100.0;
  return tier;
}

void PlanMaker::MakeRequests() {
  const int count = Between(10, 60);
  load_ = Micros(100'000, 3'000'000);
  for (int i = 0; i < count; ++i) plan_.requests.push_back(MakeRequest());
  std::stable_sort(
      plan_.requests.begin(), plan_.requests.end(),
      [](const SimRequest& a, const SimRequest& b) { return a.at < b.at; });
}

SimRequest PlanMaker::MakeRequest() {
  SimRequest request;
  request.at = Micros(0, absl::ToInt64Microseconds(load_));
  request.seed = random_.Below(1'000'000'000);
  request.prompt = OneIn(4) ? Between(1, 20) : Between(1, 300);
  if (tiers_ ? !OneIn(4) : OneIn(2)) {
    request.prefix = Between(0, 3);
    request.shared =
        tiers_ && OneIn(2) ? request.prompt : Between(0, request.prompt);
  }
  request.max_tokens = OneIn(8) ? 1 : Between(1, OneIn(4) ? 120 : 40);
  if (OneIn(3)) AskForMore(request);
  if (OneIn(6)) request.timeout = Micros(2'000, 2'000'000);
  if (OneIn(6)) request.cancel_after = Micros(0, 800'000);
  request.priority = OneIn(8) ? Between(-2, 2) : 0;
  return request;
}

void PlanMaker::AskForMore(SimRequest& request) {
  // Digits and brackets of two tokens: one in a few dozen tokens ends there.
  constexpr const char* kStops[] = {"7><1", "42", "><9", "3>", "<77", "0><5"};
  switch (Between(0, 9)) {
    case 0:
    case 1:
      request.n = Between(2, 5);
      break;
    case 2:
      request.n = Between(1, 3);
      request.best_of = request.n + Between(1, 2);
      request.max_tokens = std::min(request.max_tokens, 16);
      break;
    case 3:
      request.beam_width = Between(2, 4);
      request.n = Between(1, request.beam_width);
      request.max_tokens = std::min(request.max_tokens, 10);
      break;
    case 4:
      request.logprobs = Between(0, 5);
      request.max_tokens = std::min(request.max_tokens, 16);
      break;
    case 5:
      request.prompt_logprobs = Between(0, 2);
      request.prompt = std::min(request.prompt, 60);
      break;
    case 6:
      request.mirostat = OneIn(2);
      request.penalties = !request.mirostat || OneIn(2);
      break;
    case 7:
      request.temperature = 0;
      break;
    default:
      request.stop = OneOf(kStops);
      break;
  }
  request.shared = std::min(request.shared, request.prompt);
}

void PlanMaker::MakeFaults() {
  // One run in ten is left in peace; the others have a few kinds of faults,
  // many times: rare pairs of kinds meet in some seed.
  if (OneIn(10)) return;
  std::vector<FaultKind> kinds;
  const int count = Between(1, 5);
  for (int i = 0; i < count; ++i) {
    kinds.push_back(static_cast<FaultKind>(
        Between(0, static_cast<int>(FaultKind::kNoHeartbeats))));
  }
  const int faults = Between(1, 60);
  int slow_links = 0;
  for (int i = 0; i < faults; ++i) {
    FaultKind kind = kinds[random_.Below(kinds.size())];
    // Their factors multiply: many at once are a link that stands still, and a
    // page that entered it stays on it when they are over.
    if (kind == FaultKind::kSlowLink && ++slow_links > 3) {
      kind = FaultKind::kDelay;
    }
    plan_.faults.push_back(MakeFault(kind));
    const Fault& fault = plan_.faults.back();
    if (fault.kind != FaultKind::kDrain) continue;
    // As in a rolling restart: what drained comes back.
    plan_.faults.push_back({FaultKind::kKill, fault.at + Micros(1, 3'000'000),
                            Micros(1'000, 500'000), fault.host});
  }
  std::stable_sort(plan_.faults.begin(), plan_.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
}

// Last, so that everything else of a seed's plan is as without them.
void PlanMaker::AddRouters() {
  if (!OneIn(4)) return;
  plan_.cluster.routers = Between(2, 3);
  // One of them gets all that would have struck the only one.
  const std::vector<std::string> names = RoutersOf(plan_.cluster);
  const std::string& struck = names[random_.Below(names.size())];
  for (Fault& fault : plan_.faults) {
    if (fault.host == "router") fault.host = struck;
  }
}

Fault PlanMaker::MakeFault(FaultKind kind) {
  Fault fault;
  fault.kind = kind;
  fault.at = Micros(0, absl::ToInt64Microseconds(load_) * 3 / 2);
  fault.host = OneIn(8) ? "router" : Worker();
  fault.lasts =
      OneIn(8) ? Micros(1'000'000, 15'000'000) : Micros(1'000, 800'000);
  if (IsOnPath(kind) && OneIn(2)) fault.peer = Worker();
  if (fault.peer == fault.host) fault.peer.clear();
  switch (kind) {
    case FaultKind::kDelay:
      fault.amount = Between(1, 100) / 100.0;
      break;
    case FaultKind::kSlowLink:
    case FaultKind::kSlow:
      fault.amount = Between(2, 8);
      break;
    case FaultKind::kPostFails:
    case FaultKind::kCompletionLost:
    case FaultKind::kPageDuplicated:
    case FaultKind::kPageReordered:
    case FaultKind::kPageCorrupted:
    case FaultKind::kLateWrite:
    case FaultKind::kStreamBreaks:
      fault.amount = Between(1, 60) / 100.0;
      break;
    case FaultKind::kClockJump:
      fault.amount = Between(OneIn(3) ? -500 : 1, 2000) / 100.0;
      break;
    case FaultKind::kClockDrift:
      fault.amount = Between(50, 200) / 100.0;
      break;
    case FaultKind::kKvFull:
      fault.amount = Between(1, least_blocks_);
      break;
    default:
      break;
  }
  return fault;
}

}  // namespace

SimPlan RandomPlan(uint64_t seed) { return PlanMaker(seed).Make(); }

}  // namespace penstock
