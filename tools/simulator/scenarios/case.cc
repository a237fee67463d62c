#include "tools/simulator/scenarios/case.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/peer/error_reason.h"

namespace penstock {

void CaseProbe::RequestPlaced(const PlacementFacts& placement) {
  placements.push_back(placement);
}

void CaseProbe::RequestRetried(RequestId request, ErrorReason) {
  ++retried[request];
  ++retries;
}

SimTransportOptions RemoteAccess() {
  SimTransportOptions transport;
  transport.receiver_validates = false;
  transport.fence_time = absl::Milliseconds(10);
  return transport;
}

SimClusterOptions CaseOptions(uint64_t seed, int prefill_workers,
                              int decode_workers) {
  SimClusterOptions options;
  options.seed = seed;
  options.prefill_workers = prefill_workers;
  options.decode_workers = decode_workers;
  return options;
}

bool LegPair::EndedWith(ErrorReason why) const {
  return decode.ended && ErrorInfoOf(*decode.ended).reason == why;
}

LegPair* Case::StartPair(GenerateRequest request, uint64_t attempt,
                         const std::vector<TokenId>& delivered,
                         const LegPairing& on) {
  LegPair* pair = pairs_.emplace_back(std::make_unique<LegPair>()).get();
  LegRequest leg;
  leg.request = std::move(request);
  leg.attempt = AttemptId(attempt);
  if (!delivered.empty()) leg.delivered.emplace_back();
  for (TokenId token : delivered) leg.delivered[0].push_back({token, 0});
  for (LegKind kind : {LegKind::kPrefill, LegKind::kDecode}) {
    const bool prefill = kind == LegKind::kPrefill;
    const std::string& name = prefill ? on.prefill : on.decode;
    const std::string& partner = prefill ? on.decode : on.prefill;
    leg.partner = {partner, partner};
    leg.worker_incarnation = worker(name).key().incarnation;
    On(name, [&](WorkerCore& core) {
      core.StartLeg(kind, leg, prefill ? &pair->prefill : &pair->decode);
    });
  }
  return pair;
}

SimClusterOptions Case::Listening(SimClusterOptions options, CaseProbe* probe) {
  options.probe = probe;
  return options;
}

Case::Case(SimClusterOptions options)
    : cluster_(Listening(std::move(options), &probe_)),
      begin_(cluster_.now()) {}

SimWorker& Case::worker(const std::string& name) {
  SimWorker* worker = cluster_.worker(name);
  CHECK(worker != nullptr) << name;
  return *worker;
}

void Case::On(const std::string& name,
              const std::function<void(WorkerCore&)>& what) {
  cluster_.host(name).Run([&] { what(worker(name).core()); });
}

BlockCounts Case::Blocks(const std::string& name) {
  return worker(name).core().pool().counts();
}

int Case::HeldBlocks(const std::string& name) {
  const BlockCounts counts = Blocks(name);
  return counts.active + counts.in_transfer + counts.quarantined;
}

SimClient* Case::Submit(int prompt, int max_tokens, const Change& change) {
  SimClient* client =
      cluster_.Submit(prompt, max_tokens, [&](GenerateRequest& request) {
        if (change) change(request);
      });
  CHECK(client != nullptr) << cluster_.refused().ToString();
  clients_.push_back(client);
  return client;
}

int Case::Finished() const {
  int finished = 0;
  for (const SimClient* client : clients_) {
    finished += client->ended.has_value() && client->ended->ok();
  }
  return finished;
}

int Case::EndedWith(ErrorReason why) const {
  int ended = 0;
  for (const SimClient* client : clients_) {
    ended += client->ended.has_value() && !client->ended->ok() &&
             ErrorInfoOf(*client->ended).reason == why;
  }
  return ended;
}

int Case::LogLines(absl::string_view text) const {
  int lines = 0;
  for (const std::string& line : cluster_.log()) {
    lines += absl::StrContains(line, text);
  }
  return lines;
}

absl::Duration Case::Elapsed() const { return cluster_.now() - begin_; }

void Case::RunFor(absl::Duration time) {
  cluster_.RunUntil(
      [this] {
        if (watch_) watch_();
        return false;
      },
      time);
}

bool Case::RunUntil(absl::string_view what, const std::function<bool()>& done,
                    absl::Duration limit) {
  const bool happened = cluster_.RunUntil(
      [&] {
        if (watch_) watch_();
        return done();
      },
      limit);
  True(what, happened);
  return happened;
}

bool Case::RunUntilIdle(absl::Duration limit) {
  return RunUntil(
      "everything drains", [this] { return cluster_.Idle(); }, limit);
}

void Case::Measured(absl::string_view what, const std::string& got,
                    const std::string& want, bool holds) {
  absl::StrAppend(&result_.measured, result_.measured.empty() ? "" : "; ", what,
                  " ", got);
  if (holds || !result_.failure.empty()) return;
  result_.failure = absl::StrCat("at ", absl::FormatDuration(Elapsed()), ": ",
                                 what, " is ", got, ", not ", want);
}

void Case::Equal(absl::string_view what, int64_t got, int64_t want) {
  Measured(what, absl::StrCat(got), absl::StrCat(want), got == want);
}

void Case::AtMost(absl::string_view what, int64_t got, int64_t bound) {
  Measured(what, absl::StrCat(got), absl::StrCat("at most ", bound),
           got <= bound);
}

void Case::AtLeast(absl::string_view what, int64_t got, int64_t bound) {
  Measured(what, absl::StrCat(got), absl::StrCat("at least ", bound),
           got >= bound);
}

void Case::AtMost(absl::string_view what, absl::Duration got,
                  absl::Duration bound) {
  Measured(what, absl::FormatDuration(got),
           absl::StrCat("at most ", absl::FormatDuration(bound)), got <= bound);
}

void Case::True(absl::string_view what, bool holds) {
  if (holds || !result_.failure.empty()) return;
  result_.failure =
      absl::StrCat("at ", absl::FormatDuration(Elapsed()), ": not so: ", what);
}

ScenarioResult Case::Finish() {
  if (std::string wrong = cluster_.Check();
      !wrong.empty() && result_.failure.empty()) {
    result_.failure = wrong;
  }
  result_.log = cluster_.log();
  result_.log_hash = cluster_.LogHash();
  return std::move(result_);
}

}  // namespace penstock
