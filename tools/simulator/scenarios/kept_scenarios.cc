// What is kept of a handoff that failed: whole pages that were looked at last.

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tools/simulator/scenarios/case.h"
#include "tools/simulator/scenarios/groups.h"

namespace penstock {
namespace {

constexpr int kPrompt = 320;

// The pages of a handoff, in order of their first landing.
struct Landings {
  explicit Landings(Case& run) {
    run.cluster().network().on_land =
        [this](const WorkerKey& to, TransferId transfer, BlockRef block) {
          for (const auto& [id, page] : pages) {
            if (id == transfer && page == block) return;
          }
          pages.emplace_back(transfer, block);
          at = to;
        };
  }
  std::vector<std::pair<TransferId, BlockRef>> pages;
  WorkerKey at;
};

SimClusterOptions ShortLeases(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 1, 1);
  options.worker.engine.prefill_chunk = 32;
  options.worker.handoff.lease = absl::Milliseconds(400);
  options.worker.handoff.renew_every = absl::Milliseconds(100);
  return options;
}

void Freeze(Case& run, const std::string& host, absl::Duration lasts) {
  Fault freeze;
  freeze.kind = FaultKind::kFreeze;
  freeze.host = host;
  freeze.lasts = lasts;
  run.cluster().Inject(freeze);
}

// A handoff until eight of its pages are at decode and looked at.
SimClient* HandOffHalf(Case& run, Landings& landed) {
  landed.pages.clear();
  SimClient* client = run.Submit(kPrompt, 8);
  run.RunUntil("eight pages came", [&] { return landed.pages.size() >= 8; });
  run.RunFor(absl::Milliseconds(4));
  return client;
}

// The third page is written over, which decode hears of together with the end
// of its lease.
ScenarioResult SpoiledAtTheEndOfALease(uint64_t seed) {
  Case run(ShortLeases(seed));
  Landings landed(run);
  for (int i = 0; i < 5; ++i) {
    SimClient* client = HandOffHalf(run, landed);
    Freeze(run, "prefill0", absl::Seconds(1));
    run.RunFor(absl::Milliseconds(20));
    const auto [transfer, block] = landed.pages[2];
    run.cluster().network().SpoilPage(landed.at, TransportKind::kTcp, transfer,
                                      block);
    run.RunFor(absl::Microseconds(10));
    Freeze(run, "decode0", absl::Milliseconds(600));
    run.RunFor(absl::Milliseconds(601));
    run.Equal("pages kept", run.HeldBlocks("decode0"), 2);
    run.RunUntil("it ends", [&] { return client->ended.has_value(); });
    run.RunUntilIdle();
  }
  run.Equal("finished", run.Finished(), 5);
  return run.Finish();
}

// A pair of legs by hand, so that nobody goes on before the fence.
GenerateRequest ByHand(uint64_t seed, int number, int prompt) {
  GenerateRequest request;
  request.id = RequestId(100 + number);
  request.prompt.assign(prompt, 7 + number);
  request.stop.max_tokens = 12;
  request.sampling.seed = seed + number;
  return request;
}

// What the client would have of both attempts is what it should have.
bool MadeTruly(const GenerateRequest& request, const LegPair& first,
               const LegPair& next) {
  std::vector<TokenId> made = first.prefill.ids;
  for (const LegPair::Leg* leg : {&next.prefill, &next.decode}) {
    made.insert(made.end(), leg->ids.begin(), leg->ids.end());
  }
  return made == SimModel::Generate(request.prompt, request.stop.max_tokens,
                                    request.sampling.seed);
}

// Pages are written by remote access: the third is written over while decode
// waits for the fence of a dead prefill worker's transfer.
ScenarioResult SpoiledInQuarantine(uint64_t seed) {
  SimClusterOptions options = ShortLeases(seed);
  options.worker.transports = {RemoteAccess()};
  Case run(options);
  Landings landed(run);
  int right = 0;
  for (int i = 0; i < 5; ++i) {
    landed.pages.clear();
    const GenerateRequest request = ByHand(seed, i, kPrompt);
    const LegPair* first = run.StartPair(request);
    run.RunUntil("eight pages came", [&] { return landed.pages.size() >= 8; });
    run.RunFor(absl::Milliseconds(4));
    run.cluster().Kill("prefill0");
    run.RunUntil("decode waits for the fence",
                 [&] { return run.Blocks("decode0").quarantined > 0; });
    const auto [transfer, block] = landed.pages[2];
    run.cluster().network().SpoilPage(landed.at, TransportKind::kTcp, transfer,
                                      block);
    run.RunUntil("it is through",
                 [&] { return run.Blocks("decode0").quarantined == 0; });
    run.Equal("pages kept", run.HeldBlocks("decode0"), 2);
    run.cluster().Restart("prefill0");
    run.RunFor(absl::Milliseconds(100));
    const LegPair* next = run.StartPair(request, 2, first->prefill.ids);
    run.RunUntil("both end", [&] { return next->ended(); });
    right += MadeTruly(request, *first, *next);
    run.RunUntilIdle();
  }
  run.Equal("right answers", right, 5);
  return run.Finish();
}

ScenarioResult OnlyWholePagesAreKept(uint64_t seed) {
  ScenarioResult checked = SpoiledAtTheEndOfALease(seed);
  return checked.failure.empty() ? SpoiledInQuarantine(seed) : checked;
}

// Decode has every page and not the commit when prefill dies; the client has a
// token more than those pages hold.
ScenarioResult APartlyFilledPageIsSentAgain(uint64_t seed) {
  Case run(CaseOptions(seed, 1, 1));
  run.cluster().network().filter = [](const WorkerKey&, const WorkerKey&,
                                      const HandoffMessage& message) {
    const auto* commit = std::get_if<Commit>(&message);
    return commit == nullptr || commit->transfer.attempt != AttemptId(1);
  };
  int right = 0;
  int64_t again = 0;
  for (int i = 0; i < 10; ++i) {
    const GenerateRequest request = ByHand(seed, i, 80 + i);
    const LegPair* first = run.StartPair(request);
    run.RunUntil("prefill delivered its token",
                 [&] { return first->prefill.tokens == 1; });
    run.RunFor(absl::Milliseconds(20));
    run.cluster().Kill("prefill0");
    run.RunUntil("decode knows",
                 [&] { return first->decode.ended.has_value(); });
    run.cluster().Restart("prefill0");
    run.RunFor(absl::Milliseconds(100));
    const LegPair* next = run.StartPair(request, 2, first->prefill.ids);
    run.RunUntil("both end", [&] { return next->ended(); });
    again += run.worker("prefill0").backend().rows_computed();
    right += MadeTruly(request, *first, *next);
    run.RunUntilIdle();
  }
  run.Equal("rows that another prefill computed, of as many prompts", again,
            10 * 81 + 45);
  run.Equal("answers made from what was kept", right, 10);
  return run.Finish();
}

}  // namespace

std::vector<Scenario> KeptScenarios() {
  return {
      {"only-whole-pages-are-kept",
       {11},
       "a page that was written over once it had been verified is kept",
       "at the end of a lease, and while a fence is waited for, decode hears "
       "of a page written over: it keeps the 2 pages before it, and 10 of 10 "
       "answers are right",
       OnlyWholePagesAreKept},
      {"a-partly-filled-page-is-sent-again",
       {10},
       "a position is missing where a kept page was not full",
       "10 handoffs go on from kept pages after a token more: the page that "
       "this token is in comes again from prefill, 10 of 10 answers are right",
       APartlyFilledPageIsSentAgain},
  };
}

}  // namespace penstock
