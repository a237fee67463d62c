// What the client gets: tokens, counts and text, however it was served.

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "tools/simulator/scenarios/case.h"
#include "tools/simulator/scenarios/groups.h"

namespace penstock {
namespace {

ScenarioResult CountedOnce(uint64_t seed) {
  Case run(CaseOptions(seed, 1, 1));
  int64_t got = 0, reported = 0, asked = 0;
  for (int prompt : {10, 100}) {  // decode alone, and a handoff
    for (int max_tokens : {1, 2, 17}) {
      for (int n : {1, 3}) {
        SimClient* client =
            run.Submit(prompt, max_tokens,
                       [&](GenerateRequest& request) { request.n = n; });
        run.RunUntilIdle();
        for (const auto& [sample, tokens] : client->samples) {
          got += tokens.size();
        }
        reported += client->last->usage.completion_tokens;
        asked += max_tokens * n;
      }
    }
  }
  run.Equal("tokens asked for", asked, 2 * (1 + 2 + 17) * 4);
  run.Equal("delivered", got, asked);
  run.Equal("reported as usage", reported, asked);
  return run.Finish();
}

// Every token ends in the middle of a character and begins with the rest of
// one, so that each boundary between two tokens cuts a character.
class CuttingTokenizer : public SimTokenizer {
 public:
  CuttingTokenizer() {
    for (int i = 0; i < SimModel::kVocabulary; ++i) {
      texts_.push_back(absl::StrCat("\x98\x80<", i, ">\xF0\x9F"));
    }
  }
  absl::string_view TokenBytes(TokenId id) const override { return texts_[id]; }

  // What a reader of the joined bytes sees: two bytes that continue nothing,
  // whole characters, and one that was never finished.
  static std::string Shown(absl::Span<const TokenId> tokens) {
    std::string text = "\uFFFD\uFFFD";
    for (size_t i = 0; i < tokens.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "<" : "\U0001F600<", tokens[i], ">");
    }
    return text + "\uFFFD";
  }

 private:
  std::vector<std::string> texts_;
};

ScenarioResult TextStateMoves(uint64_t seed) {
  const CuttingTokenizer tokenizer;
  SimClusterOptions options = CaseOptions(seed, 1, 2);
  options.tokenizer = &tokenizer;
  Case run(options);
  int wrong = 0, leaked = 0, stopped = 0;
  for (int i = 0; i < 40; ++i) {
    // Every other one is stopped by a text over four tokens, the first of
    // which prefill makes.
    std::vector<TokenId> truth;
    std::string stop;
    SimClient* client = run.Submit(60, 12, [&](GenerateRequest& request) {
      truth = SimModel::Generate(request.prompt, 12, request.sampling.seed);
      if (i % 2 == 0) return;
      stop = absl::StrCat(">\U0001F600<", truth[1], ">\U0001F600<", truth[2],
                          ">\U0001F600<", truth[3]);
      request.stop.stop_strings = {stop};
    });
    // Some lose their decode worker meanwhile, wherever they are.
    if (i % 4 >= 2) {
      run.RunUntil("some tokens came", [&] {
        return client->tokens.size() >= static_cast<size_t>(i % 4) ||
               client->ended;
      });
      run.cluster().Kill(client->placement.decode);
      run.RunFor(absl::Milliseconds(5));
      run.cluster().Restart(client->placement.decode);
    }
    run.RunUntilIdle();
    const std::string expected = stop.empty()
                                     ? CuttingTokenizer::Shown(truth)
                                     : absl::StrCat("\uFFFD\uFFFD<", truth[0]);
    wrong += client->texts[0] != expected;
    leaked += !stop.empty() && client->texts[0].size() > expected.size();
    stopped += client->finished[0] == FinishReason::kStop;
    truth.resize(client->tokens.size());
    run.True("tokens are true", client->tokens == truth);
    run.RunFor(absl::Seconds(1));
  }
  run.Equal("finished", run.Finished(), 40);
  run.Equal("texts that differ from their tokens' bytes", wrong, 0);
  run.Equal("stop texts of which a part was shown", leaked, 0);
  run.Equal("stopped by their text", stopped, 20);
  return run.Finish();
}

ScenarioResult OneAnswerHoweverServed(uint64_t seed) {
  std::vector<TokenId> prompt;
  auto same = [&](GenerateRequest& request) {
    if (prompt.empty()) prompt = request.prompt;
    request.prompt = prompt;
    request.sampling.seed = 77;
  };
  auto tokens = [](Case& run, SimClient* client) {
    run.RunUntilIdle();
    run.True("it finished", client->ended->ok());
    return client->tokens;
  };
  Case run(CaseOptions(seed, 1, 2));
  SimClient* cold = run.Submit(100, 40, same);
  const std::vector<TokenId> handed_off = tokens(run, cold);
  run.RunFor(absl::Seconds(1));
  SimClient* warm = run.Submit(100, 40, same);
  const std::vector<TokenId> from_cache = tokens(run, warm);
  Case alone(CaseOptions(seed, 0, 1));
  const std::vector<TokenId> local = tokens(alone, alone.Submit(100, 40, same));
  Case moved(CaseOptions(seed, 1, 2));
  SimClient* client = moved.Submit(100, 40, same);
  moved.RunUntil("half of it came",
                 [&] { return client->tokens.size() >= 20; });
  const std::string first_home = client->placement.decode;
  moved.cluster().Kill(first_home);
  const std::vector<TokenId> migrated = tokens(moved, client);

  run.Equal("pages moved cold", cold->last->transfer.blocks_moved, 7);
  run.Equal("tokens cached warm", warm->last->usage.cached_tokens, 96);
  run.True("it moved", moved.probe().placements.back().decode != first_home);
  run.Equal("tokens of the answer", handed_off.size(), 40);
  int equal = 1;
  for (const auto* other : {&from_cache, &local, &migrated}) {
    equal += *other == handed_off;
  }
  run.Equal("equal answers of 4", equal, 4);
  for (Case* other : {&alone, &moved}) {
    if (ScenarioResult result = other->Finish(); !result.failure.empty()) {
      return result;
    }
  }
  return run.Finish();
}

ScenarioResult DrainThenExit(uint64_t seed) {
  Case run(CaseOptions(seed, 2, 2));
  for (int i = 0; i < 120; ++i) {
    run.cluster().After(absl::Milliseconds(10) * i,
                        [&] { run.Submit(100, 30); });
  }
  for (const char* name : {"decode1", "prefill1"}) {
    run.RunFor(absl::Milliseconds(300));
    run.RunUntil("requests run there", [&] {
      return run.worker(name).core().Load().active_requests > 0;
    });
    run.On(name, [](WorkerCore& core) { core.BeginDrain(); });
    run.RunUntil("it has handed on what it had", [&] {
      const WorkerCore& core = run.worker(name).core();
      return core.idle() && !core.keeps();
    });
    run.RunFor(absl::Milliseconds(5));
    run.cluster().Kill(name);
  }
  run.RunFor(absl::Seconds(1));
  run.RunUntilIdle();
  run.Equal("submitted", run.clients().size(), 120);
  run.Equal("finished", run.Finished(), 120);
  return run.Finish();
}

}  // namespace

std::vector<Scenario> AnswerScenarios() {
  return {
      {"text-state-moves",
       {25},
       "U+FFFD, doubled characters or parts of stop texts where a text moved",
       "40 texts whose every token boundary cuts a character, handed off and "
       "moved in the middle of one: 0 differ from the joined bytes; of 20 stop "
       "texts over 4 tokens 0 leak",
       TextStateMoves},
      {"counted-once",
       {26},
       "max_tokens=1 gives 2; prefill's token is not counted; n>1 leaks",
       "1, 2 or 17 tokens of 1 or 3 answers, handed off or not: 160 asked for, "
       "160 delivered, 160 in usage",
       CountedOnce},
      {"one-answer-however-served",
       {28},
       "greedy output differs between a cold and a warm cache",
       "cold and handed off, warm, computed by decode alone, and moved after "
       "20 "
       "tokens: 4 equal answers of 40 tokens",
       OneAnswerHoweverServed},
      {"drain-then-exit",
       {27},
       "errors on scale-down: workers exit before they drained",
       "a decode and a prefill worker on which requests run drain and exit: "
       "120 of 120 finish",
       DrainThenExit},
  };
}

}  // namespace penstock
