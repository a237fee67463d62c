// What may happen to a handoff between two workers.

#include <algorithm>
#include <memory>
#include <optional>

#include "common/peer/error_reason.h"
#include "tools/simulator/scenarios/case.h"
#include "tools/simulator/scenarios/groups.h"

namespace penstock {
namespace {

constexpr absl::Duration kLatency = absl::Milliseconds(1);

ScenarioResult NoPageIsReusedBeforeItsFence(uint64_t seed) {
  int64_t under_way[2] = {}, quarantined[2] = {};
  int given_up = 0;
  std::unique_ptr<Case> last;
  for (bool validated : {false, true}) {
    SimClusterOptions options = CaseOptions(seed, 1, 1);
    options.worker.blocks = 48;
    if (!validated) options.worker.transports = {RemoteAccess()};
    // A page takes half a millisecond, so that most are under way.
    options.page_bytes = 1 << 20;
    options.bytes_per_second = 2e9;
    last = std::make_unique<Case>(options);
    Case& run = *last;
    run.Watch([&] {
      const BlockPool& pool = run.worker("decode0").core().pool();
      for (const auto& [number, page] :
           run.cluster().network().pages_in_flight()) {
        given_up += !page.validated && !pool.IsLive(page.block);
      }
      quarantined[validated] =
          std::max<int64_t>(quarantined[validated], pool.counts().quarantined);
    });
    for (int i = 0; i < 20; ++i) {
      SimClient* client = run.Submit(300, 20);
      // Others wait for exactly these blocks.
      run.Submit(200, 20);
      run.Submit(8, 40);
      run.RunUntil("pages are under way", [&] {
        return run.cluster().network().pages_in_flight().size() > 4;
      });
      under_way[validated] += run.cluster().network().pages_in_flight().size();
      run.On("decode0", [&](WorkerCore& core) {
        core.CancelLeg(LegKind::kDecode, {client->request.id, AttemptId(1)});
      });
      run.RunUntilIdle();
    }
    run.AtLeast("pages under way at 20 aborts", under_way[validated], 100);
    run.AtLeast("finished", run.Finished(), 40);
    if (validated) {
      run.AtLeast("quarantined at most, without checks at the receiver",
                  quarantined[0], 10);
      run.Equal("with them", quarantined[1], 0);
      run.Equal("given up while a write might land", given_up, 0);
    }
    if (ScenarioResult result = run.Finish();
        validated || !result.failure.empty()) {
      return result;
    }
  }
  return {};
}

ScenarioResult RejectedBeforeAdmission(uint64_t seed) {
  Case run(CaseOptions(seed, 1, 1));
  SimWorker& prefill = run.worker("prefill0");
  int most_held = 0;
  absl::Duration begun = absl::InfiniteDuration(), longest;
  run.Watch([&] {
    most_held = std::max(most_held, run.HeldBlocks("prefill0"));
    if (prefill.core().idle()) {
      begun = absl::InfiniteDuration();
    } else if (begun == absl::InfiniteDuration()) {
      begun = run.Elapsed();
    } else {
      longest = std::max(longest, run.Elapsed() - begun);
    }
  });
  int too_large = 0;
  for (int i = 0; i < 10; ++i) {
    // Six beams fit prefill's pool, but not decode's.
    GenerateRequest request;
    request.id = RequestId(100 + i);
    request.prompt.assign(600, 100 + i);
    request.stop.max_tokens = 400;
    request.beam.width = 6;
    const LegPair* pair = run.StartPair(request);
    run.RunUntil("both legs end", [&] { return pair->ended(); });
    too_large += pair->EndedWith(ErrorReason::kKvTooSmall);
  }
  // The router does not know yet.
  run.On("decode0", [](WorkerCore& core) { core.BeginDrain(); });
  for (int i = 0; i < 10; ++i) run.Submit(600, 4);
  run.RunUntilIdle();
  run.Equal("refused as too large", too_large, 10);
  run.Equal("finished by one that drains", run.Finished(), 0);
  run.Equal("blocks held by prefill", most_held, 0);
  run.Equal("rows computed by prefill", prefill.backend().rows_computed(), 0);
  // The answer to its offer, and the router's cancel, cross one round trip.
  run.AtMost("prefill let go after", longest, 4 * kLatency);
  return run.Finish();
}

ScenarioResult FailedPostIsNacked(uint64_t seed) {
  absl::Duration undisturbed;
  int landed_undisturbed = 0;
  for (bool disturbed : {false, true}) {
    Case run(CaseOptions(seed, 1, 1));
    int landed = 0;
    TransferId last;
    run.cluster().network().on_page = [&](TransferId transfer,
                                          absl::Span<uint8_t> page) {
      ++landed;
      if (disturbed && transfer != last) page[5] ^= 0x10;
      last = transfer;
    };
    for (int i = 0; i < 10; ++i) {
      SimClient* client = run.Submit(100, 4);
      run.RunUntil("decode has granted",
                   [&] { return run.Blocks("decode0").in_transfer > 0; });
      // Announced with checksums that nothing has.
      if (disturbed) {
        run.On("decode0", [&](WorkerCore& core) {
          core.peer_listener()->OnPeerMessage(
              run.worker("prefill0").key(),
              ChunkDone{{client->request.id, AttemptId(1)}, 0, 0, {1}, {}});
        });
      }
      run.RunUntilIdle();
    }
    if (!disturbed) {
      undisturbed = run.Elapsed();
      landed_undisturbed = landed;
      ScenarioResult result = run.Finish();
      if (!result.failure.empty()) return result;
      continue;
    }
    run.Equal("finished", run.Finished(), 10);
    run.Equal("pages that landed undisturbed", landed_undisturbed, 70);
    // At least the page that failed goes again, at most its whole chunk.
    run.AtLeast("pages that landed", landed, 80);
    run.AtMost("pages that landed", landed, 140);
    run.Equal("nacks", run.LogLines(" ChunkNack "), 10);
    run.AtMost("later than undisturbed", run.Elapsed() - undisturbed,
               10 * 3 * kLatency);
    return run.Finish();
  }
  return {};
}

ScenarioResult OnlyAVerifiedCommitStartsDecode(uint64_t seed) {
  Case run(CaseOptions(seed, 1, 1));
  run.cluster().network().on_page = [&](TransferId, absl::Span<uint8_t> page) {
    page[seed % page.size()] ^= 1;
  };
  size_t from_decode = 0;
  int failed = 0;
  for (int i = 0; i < 10; ++i) {
    GenerateRequest request;
    request.id = RequestId(100 + i);
    request.prompt.assign(100 + i, 100 + i);
    request.stop.max_tokens = 20;
    const LegPair* pair = run.StartPair(request);
    run.RunUntil("both legs end", [&] { return pair->ended(); });
    from_decode += pair->decode.tokens;
    failed += pair->EndedWith(ErrorReason::kTransferFailed);
  }
  run.Equal("failed by name", failed, 10);
  run.Equal("tokens made by decode", from_decode, 0);
  run.Equal("rows computed by decode",
            run.worker("decode0").backend().rows_computed(), 0);
  // With a router a request goes on where prefill's token left off.
  for (int i = 0; i < 3; ++i) run.Submit(100, 4);
  run.RunUntilIdle();
  return run.Finish();
}

ScenarioResult SourcePinnedUntilSent(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 1, 1);
  options.worker.blocks = 24;  // two such prompts, and less than a third
  options.latency = absl::Milliseconds(50);
  Case run(options);
  int pressed = 0, most = 0;
  run.Watch([&] {
    const BlockCounts counts = run.Blocks("prefill0");
    if (counts.in_transfer == 0 || counts.free + counts.cached > 4) return;
    ++pressed;
    most = std::max(most, counts.in_transfer);
  });
  for (int i = 0; i < 8; ++i) run.Submit(160, 4);
  run.RunUntilIdle();
  run.Equal("finished", run.Finished(), 8);
  run.AtLeast("events with pages unsent and no room for a prompt", pressed, 8);
  run.AtLeast("pages unsent then", most, 10);
  // Evicted ones would come from a cache that has each prompt once.
  run.Equal("rows computed by prefill",
            run.worker("prefill0").backend().rows_computed(), 8 * 160);
  return run.Finish();
}

ScenarioResult PreemptedPrefillIsRecomputed(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 1, 1);
  SimWorkerOptions prefill = options.worker, decode = options.worker;
  prefill.key.name = "prefill0";
  prefill.roles = {true, true};
  prefill.blocks = 60;
  prefill.engine.prefill_chunk = 16;
  decode.key.name = "decode0";
  decode.roles = {false, true};
  decode.blocks = 512;
  options.workers = {prefill, decode};
  LegPair::Leg older;
  Case run(options);
  // Older answers of prefill's own, which take a block each every 16 steps.
  constexpr int kAnswers = 8, kTokens = 80;
  LegRequest leg;
  leg.request.id = RequestId(100);
  leg.request.prompt.assign(16, 7);
  leg.request.stop.max_tokens = kTokens;
  leg.request.n = kAnswers;
  leg.attempt = AttemptId(1);
  leg.worker_incarnation = run.worker("prefill0").key().incarnation;
  run.On("prefill0", [&](WorkerCore& core) {
    core.StartLeg(LegKind::kDecode, leg, &older);
  });
  int64_t needed = 16 + kAnswers * (kTokens - 1);
  // Too many tokens for prefill to serve these alone.
  for (int i = 0; i < 4; ++i) {
    run.Submit(320, 700);
    needed += 320;
  }
  run.RunUntilIdle();
  const auto& placed = run.probe().placements;
  run.Equal("finished", run.Finished(), 4);
  run.Equal("handed off",
            std::count_if(placed.begin(), placed.end(),
                          [](const PlacementFacts& facts) {
                            return facts.prefill == "prefill0" &&
                                   facts.decode == "decode0";
                          }),
            4);
  run.Equal("older tokens", older.tokens, kAnswers * kTokens);
  run.AtLeast("rows that prefill computed again",
              run.worker("prefill0").backend().rows_computed() - needed, 16);
  run.Equal("rows computed by decode",
            run.worker("decode0").backend().rows_computed(), 4 * 699);
  return run.Finish();
}

// The time from a decode leg's end until prefill has let go of the request.
absl::Duration PrefillRunsOn(Case& run) {
  const absl::Duration ended = run.Elapsed();
  run.RunUntil("prefill stops",
               [&] { return run.worker("prefill0").core().idle(); });
  return run.Elapsed() - ended;
}

ScenarioResult RefusalCancelsThePartner(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 1, 2);
  options.worker.blocks = 256;
  Case run(options);
  run.RunFor(absl::Milliseconds(50));
  // Refused: the pair is tried again with the other decode worker.
  run.On("decode1", [](WorkerCore& core) { core.BeginDrain(); });
  for (int i = 0; i < 8; ++i) run.Submit(300, 4);
  run.RunUntilIdle();
  run.Equal("finished after a refusal", run.Finished(), 8);
  run.AtLeast("placed again", run.probe().retries, 1);
  // A leg that ends while prefill computes thousands of tokens for it, and no
  // router that says so.
  GenerateRequest request;
  request.id = RequestId(100);
  request.prompt.assign(3000, 7);
  run.StartPair(request);
  run.RunUntil("prefill computes",
               [&] { return run.Blocks("prefill0").active > 10; });
  run.On("decode0", [&](WorkerCore& core) {
    core.CancelLeg(LegKind::kDecode, {request.id, AttemptId(1)});
  });
  run.AtMost("prefill stopped after", PrefillRunsOn(run),
             absl::Milliseconds(100));
  run.RunUntilIdle();
  return run.Finish();
}

}  // namespace

std::vector<Scenario> HandoffScenarios() {
  return {
      {"no-page-is-reused-before-its-fence",
       {1},
       "another request's KV inside an answer, and no error",
       "of over 100 pages under way at 20 aborts, 0 are given up while a write "
       "might land: at least 10 at once are quarantined without checks at the "
       "receiver, none with them; the others' tokens are true",
       NoPageIsReusedBeforeItsFence},
      {"rejected-before-admission",
       {3},
       "prefill blocks stranded for minutes after decode refused",
       "prefill holds 0 blocks and computes 0 rows for what decode refuses; it "
       "lets go within one round trip",
       RejectedBeforeAdmission},
      {"failed-post-is-nacked",
       {7},
       "the receiver counts to N for ever: a write failed, nobody said so",
       "10 requests whose first page arrives wrong, and is announced wrong, "
       "finish: each chunk is sent once more, 10 nacks, one round trip later "
       "each",
       FailedPostIsNacked},
      {"source-pinned-until-sent",
       {9},
       "decode waits for ever: the source was evicted before the send",
       "8 prompts through room for two: 10 pages that were computed and not "
       "yet "
       "sent stay while others wait for their blocks; 8 of 8 finish with true "
       "tokens, each prompt computed once",
       SourcePinnedUntilSent},
      {"preempted-prefill-is-recomputed",
       {10},
       "an empty or garbage handoff after prefill was preempted",
       "4 of 4 handoffs finish with true tokens though prefill, where older "
       "answers grow, computes some prompts again; decode computes its "
       "699 rows of each and no more",
       PreemptedPrefillIsRecomputed},
      {"only-a-verified-commit-starts-decode",
       {11},
       "corrupt tokens with a success status",
       "10 handoffs whose pages never arrive whole fail by name; decode makes "
       "0 tokens and computes 0 rows",
       OnlyAVerifiedCommitStartsDecode},
      {"refusal-cancels-the-partner",
       {29},
       "decode refuses, and prefill runs on for half an hour",
       "prefill stops within 100 ms of the decode leg's end; refused pairs are "
       "tried again and finish",
       RefusalCancelsThePartner},
  };
}

}  // namespace penstock
