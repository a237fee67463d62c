#include "tests/contract/backend_conformance.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <variant>

#include "common/env/random.h"
#include "common/model/kv_layout.h"

namespace penstock {
namespace {

constexpr int kBlocks = 256;
constexpr int kBigChunk = 512;
constexpr int kSmallChunk = 64;

// Continuous batching in small: each step takes a chunk of every sequence that
// still has a prompt and a decode row of every other, in an order that turns,
// until each has drawn `count` + 1 tokens.
std::vector<Transcript> RunTogether(ModelDriver& driver,
                                    std::vector<DrivenSequence>& sequences,
                                    int chunk, int count) {
  std::vector<Transcript> drawn(sequences.size());
  for (int turn = 0;; ++turn) {
    std::vector<StepPart> parts;
    std::vector<size_t> drawers;
    int rows_left = driver.backend().caps().max_rows;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const size_t index = (i * 7 + turn) % sequences.size();
      DrivenSequence& sequence = sequences[index];
      if (drawn[index].size() > static_cast<size_t>(count)) continue;
      const int uncomputed =
          static_cast<int>(sequence.tokens.size()) - sequence.computed;
      const int rows = std::min({uncomputed, chunk, rows_left});
      if (rows == 0) continue;
      rows_left -= rows;
      const bool draws = rows == uncomputed;
      parts.push_back(
          {.sequence = &sequence, .rows = rows, .sampled = draws ? 1 : 0});
      if (draws) drawers.push_back(index);
    }
    if (parts.empty()) return drawn;
    std::vector<SampledToken> tokens = driver.Step(parts);
    for (size_t i = 0; i < drawers.size(); ++i) {
      sequences[drawers[i]].tokens.push_back(tokens[i].token);
      drawn[drawers[i]].push_back(std::move(tokens[i]));
    }
  }
}

void CopyBlocks(ModelDriver& from, const DrivenSequence& source, int blocks,
                ModelDriver& to, DrivenSequence& target) {
  for (int i = 0; i < blocks; ++i) {
    target.blocks.push_back(to.Allocate());
    std::memcpy(to.block(target.blocks.back()).data(),
                from.block(source.blocks[i]).data(),
                from.block(source.blocks[i]).size());
  }
}

struct Drivers {
  std::unique_ptr<ModelDriver> first, second;
  Transcript baseline;
};

// Made once for each param: a real model takes seconds to pack.
Drivers& DriversOf(const ConformanceParam& param) {
  static auto* all = new std::map<std::string, Drivers>();
  return (*all)[param.name()];
}

}  // namespace

ModelDriver& BackendConformanceTest::driver() {
  Drivers& drivers = DriversOf(GetParam());
  if (drivers.first == nullptr) {
    drivers.first = std::make_unique<ModelDriver>(GetParam().maker,
                                                  GetParam().model(), kBlocks);
  }
  return *drivers.first;
}

ModelDriver& BackendConformanceTest::other_driver() {
  Drivers& drivers = DriversOf(GetParam());
  if (drivers.second == nullptr) {
    drivers.second = std::make_unique<ModelDriver>(
        GetParam().maker, GetParam().model(), kBlocks / 2);
  }
  return *drivers.second;
}

DrivenSequence BackendConformanceTest::Sequence() const {
  DrivenSequence sequence;
  sequence.tokens = GetParam().prompt;
  return sequence;
}

std::vector<TokenId> BackendConformanceTest::OtherPrompt(int n,
                                                         int tokens) const {
  SeededRandom random(n);
  std::vector<TokenId> prompt(tokens);
  for (TokenId& token : prompt) {
    token = static_cast<TokenId>(random.Below(spec().vocab_size));
  }
  return prompt;
}

const Transcript& BackendConformanceTest::Baseline() {
  Drivers& drivers = DriversOf(GetParam());
  if (drivers.baseline.empty()) {
    drivers.baseline = Alone(Sequence(), kBigChunk, GetParam().decode_tokens);
  }
  return drivers.baseline;
}

Transcript BackendConformanceTest::Alone(DrivenSequence sequence, int chunk,
                                         int count) {
  SampledToken first = driver().Prefill(sequence, chunk)[0];
  Transcript drawn = driver().Decode(sequence, std::move(first), count);
  driver().Release(sequence);
  return drawn;
}

TEST_P(BackendConformanceTest, CapsAreFilledIn) {
  const BackendCaps& caps = driver().backend().caps();
  EXPECT_FALSE(caps.name.empty());
  EXPECT_TRUE(caps.numerics);
  EXPECT_TRUE(caps.batch_invariant);
  EXPECT_EQ(caps.max_rows, BackendMaker::Setup().max_rows);
  EXPECT_EQ(caps.max_sequences, BackendMaker::Setup().max_sequences);
  EXPECT_EQ(caps.numerics, other_driver().backend().caps().numerics);
  const KvLayout& layout = driver().backend().kv_layout();
  EXPECT_EQ(layout.id(), other_driver().backend().kv_layout().id());
  EXPECT_EQ(layout.layers, spec().layers);
}

TEST_P(BackendConformanceTest, ThePromptCoversTwoSplits) {
  EXPECT_GT(GetParam().prompt.size(), 512u);
}

TEST_P(BackendConformanceTest, RunningAgainGivesTheSameBits) {
  ExpectSame(Alone(Sequence(), kBigChunk, GetParam().decode_tokens),
             Baseline());
}

TEST_P(BackendConformanceTest, ChunkingDoesNotMatter) {
  for (int chunk : {kSmallChunk, 33}) {
    SCOPED_TRACE(chunk);
    ExpectSame(Alone(Sequence(), chunk, GetParam().decode_tokens), Baseline());
  }
}

// The last 40 tokens one by one, as if they had been decoded.
TEST_P(BackendConformanceTest, PrefillingOneByOneDoesNotMatter) {
  DrivenSequence sequence = Sequence();
  const std::vector<TokenId> prompt = sequence.tokens;
  sequence.tokens.resize(prompt.size() - 40);
  driver().Prefill(sequence, kBigChunk, 0);
  sequence.tokens = prompt;
  SampledToken first = driver().Prefill(sequence, 1)[0];
  ExpectSame(
      driver().Decode(sequence, std::move(first), GetParam().decode_tokens),
      Baseline());
  driver().Release(sequence);
}

TEST_P(BackendConformanceTest, ABatchOfSixteenDoesNotMatter) {
  std::vector<DrivenSequence> sequences(16);
  SeededRandom random(16);
  for (int i = 0; i < 16; ++i) {
    sequences[i].tokens =
        OtherPrompt(i, 1 + static_cast<int>(random.Below(90)));
  }
  sequences[5] = Sequence();
  const std::vector<DrivenSequence> fresh = sequences;
  const std::vector<Transcript> drawn =
      RunTogether(driver(), sequences, kSmallChunk, GetParam().decode_tokens);
  for (DrivenSequence& sequence : sequences) driver().Release(sequence);
  ExpectSame(drawn[5], Baseline());
  for (int i : {0, 6, 15}) {
    SCOPED_TRACE(i);
    ExpectSame(drawn[i], Alone(fresh[i], kBigChunk, GetParam().decode_tokens));
  }
}

// Pages of one backend instance continue in another, at other block indices,
// moved by the segments that the layout names.
TEST_P(BackendConformanceTest, HandedOffPagesContinueTheSame) {
  DrivenSequence prefilled = Sequence();
  SampledToken first = driver().Prefill(prefilled, kBigChunk)[0];
  DrivenSequence decoded = Sequence();
  const KvLayout& layout = driver().backend().kv_layout();
  other_driver().Allocate();  // indices differ
  for (BlockIndex block : prefilled.blocks) {
    decoded.blocks.push_back(other_driver().Allocate());
    absl::Span<uint8_t> to = other_driver().block(decoded.blocks.back());
    for (int layer = 0; layer < layout.layers; ++layer) {
      for (const Segment& segment :
           layout.Segments(block, {.first = layer, .last = layer + 1})) {
        const uint64_t at = segment.offset - block * layout.block_bytes();
        std::memcpy(to.data() + at, driver().block(block).data() + at,
                    segment.length);
      }
    }
  }
  decoded.computed = prefilled.computed;
  driver().Release(prefilled);
  ExpectSame(other_driver().Decode(decoded, std::move(first),
                                   GetParam().decode_tokens),
             Baseline());
  other_driver().Release(decoded);
}

// A warm prefix: all but the last blocks are there already.
TEST_P(BackendConformanceTest, CachedPrefixContinuesTheSame) {
  DrivenSequence cold = Sequence();
  driver().Prefill(cold, kSmallChunk, 0);
  for (int cached : {1, static_cast<int>(cold.blocks.size()) - 1}) {
    SCOPED_TRACE(cached);
    DrivenSequence warm = Sequence();
    CopyBlocks(driver(), cold, cached, driver(), warm);
    warm.computed = cached * kBlockTokens;
    SampledToken first = driver().Prefill(warm, kBigChunk)[0];
    ExpectSame(
        driver().Decode(warm, std::move(first), GetParam().decode_tokens),
        Baseline());
    driver().Release(warm);
  }
  driver().Release(cold);
}

TEST_P(BackendConformanceTest, PreemptedAndRecomputedContinuesTheSame) {
  const int count = GetParam().decode_tokens;
  DrivenSequence sequence = Sequence();
  SampledToken first = driver().Prefill(sequence, kBigChunk)[0];
  Transcript drawn = driver().Decode(sequence, std::move(first), count / 2);
  driver().Release(sequence);
  sequence.tokens.push_back(drawn.back().token);
  SampledToken next = driver().Prefill(sequence, kSmallChunk)[0];
  for (SampledToken& token :
       driver().Decode(sequence, std::move(next), count - count / 2 - 1)) {
    drawn.push_back(std::move(token));
  }
  ExpectSame(drawn, Baseline());
  driver().Release(sequence);
}

// Decoded tokens, fed as a prompt, draw again what was drawn.
TEST_P(BackendConformanceTest, PrefillingWhatWasDecodedDrawsTheSame) {
  DrivenSequence sequence = Sequence();
  for (size_t i = 0; i + 1 < Baseline().size(); ++i) {
    sequence.tokens.push_back(Baseline()[i].token);
  }
  ExpectSame(driver().Prefill(sequence, kBigChunk,
                              static_cast<int>(Baseline().size())),
             Baseline());
  driver().Release(sequence);
}

// Copy-on-write: two continuations of one prompt share its full blocks and
// have a copy each of the last, made in the step that writes to it.
TEST_P(BackendConformanceTest, CopiedBlocksPartTheirWays) {
  std::vector<TokenId> prompt = OtherPrompt(1, kBlockTokens + 5);
  DrivenSequence left;
  left.tokens = prompt;
  driver().Prefill(left, kBigChunk, 0);
  DrivenSequence right = left;
  const StepPlan::BlockCopy copy = {.from = left.blocks[1],
                                    .to = driver().Allocate()};
  right.blocks[1] = copy.to;
  left.tokens.push_back(3);
  right.tokens.push_back(4);

  StepPlan plan = driver().Plan({{.sequence = &left}, {.sequence = &right}});
  plan.copies = {copy};
  StepResult together = driver().Run(std::move(plan));
  ASSERT_TRUE(together.status.ok()) << together.status;
  right.blocks.erase(right.blocks.begin());  // left's
  driver().Release(left);
  driver().Release(right);

  for (int i : {0, 1}) {
    DrivenSequence alone;
    alone.tokens = prompt;
    alone.tokens.push_back(3 + i);
    ExpectSame({together.sampled[i]}, driver().Prefill(alone, kBigChunk));
    driver().Release(alone);
  }
}

TEST_P(BackendConformanceTest, CopiesAreWholeBlocks) {
  DrivenSequence sequence;
  sequence.tokens = OtherPrompt(2, kBlockTokens + 1);
  driver().Prefill(sequence, kBlockTokens, 0);
  const StepPlan::BlockCopy copy = {.from = sequence.blocks[0],
                                    .to = driver().Allocate()};
  sequence.tokens.push_back(1);
  StepPlan plan = driver().Plan({{.sequence = &sequence}});
  plan.copies = {copy};
  ASSERT_TRUE(driver().Run(std::move(plan)).status.ok());
  EXPECT_EQ(driver().block(copy.from), driver().block(copy.to));
  sequence.blocks.push_back(copy.to);
  driver().Release(sequence);
}

// Only the asked rows, in the order asked, a row as often as asked.
TEST_P(BackendConformanceTest, SamplesComeAsAsked) {
  DrivenSequence sequence;
  sequence.tokens = OtherPrompt(3, 50);
  const Transcript all = driver().Prefill(sequence, kBigChunk, 50);
  ASSERT_EQ(all.size(), 50u);
  sequence.computed = 0;  // again, into the same blocks
  StepPlan plan =
      driver().Plan({{.sequence = &sequence, .rows = 50, .sampled = 50}});
  std::vector<SampleRow> asked;
  for (int row : {49, 0, 17, 17, 31}) asked.push_back(plan.samples[row]);
  plan.samples = asked;
  StepResult result = driver().Run(std::move(plan));
  ASSERT_TRUE(result.status.ok()) << result.status;
  ExpectSame(result.sampled, {all[49], all[0], all[17], all[17], all[31]});
  driver().Release(sequence);
}

// Scores beside draws, of rows of their own and of drawn rows, out of order.
TEST_P(BackendConformanceTest, ScoresHaveTheBitsOfDraws) {
  DrivenSequence sequence;
  sequence.tokens = OtherPrompt(3, 50);
  const Transcript all = driver().Prefill(sequence, kBigChunk, 50);
  sequence.computed = 0;
  StepPlan plan =
      driver().Plan({{.sequence = &sequence, .rows = 50, .sampled = 2}});
  const std::vector<int> scored = {49, 0, 17, 17, 31};
  for (int row : scored) {
    plan.scores.push_back({.row = row, .token = all[row].token, .best = 5});
  }
  const StepResult result = driver().Run(std::move(plan));
  ASSERT_TRUE(result.status.ok()) << result.status;
  ExpectSame(result.sampled, {all[48], all[49]});
  ASSERT_EQ(result.scored.size(), scored.size());
  for (size_t i = 0; i < scored.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectSame({{all[scored[i]].token, result.scored[i]}}, {all[scored[i]]});
  }
  driver().Release(sequence);
}

TEST_P(BackendConformanceTest, AStepMaySampleNothing) {
  DrivenSequence sequence;
  sequence.tokens = OtherPrompt(4, 20);
  EXPECT_TRUE(driver().Prefill(sequence, kBigChunk, 0).empty());
  driver().Release(sequence);
}

// Sequences may be listed in any order, rows and block tables lie anywhere.
TEST_P(BackendConformanceTest, TheOrderOfThePlanDoesNotMatter) {
  std::vector<DrivenSequence> sequences(3);
  const int lengths[] = {40, 1, 21};
  for (int i = 0; i < 3; ++i) sequences[i].tokens = OtherPrompt(i, lengths[i]);
  const StepPlan plan = driver().Plan(
      {{&sequences[0], 40, 1}, {&sequences[1], 1, 1}, {&sequences[2], 21, 1}});
  const StepResult straight = driver().Run(plan);
  ASSERT_TRUE(straight.status.ok()) << straight.status;

  StepPlan turned = plan;
  std::reverse(turned.sequences.begin(), turned.sequences.end());
  std::reverse(turned.block_table.begin(), turned.block_table.end());
  const int table = static_cast<int>(plan.block_table.size());
  for (SequenceRows& sequence : turned.sequences) {
    // Each sequence's own entries must rise again.
    sequence.first_block = table - sequence.first_block - sequence.blocks;
    auto first = turned.block_table.begin() + sequence.first_block;
    std::reverse(first, first + sequence.blocks);
  }
  std::swap(turned.samples[0], turned.samples[2]);
  const StepResult result = driver().Run(turned);
  ASSERT_TRUE(result.status.ok()) << result.status;
  ExpectSame(result.sampled,
             {straight.sampled[2], straight.sampled[1], straight.sampled[0]});
  for (DrivenSequence& sequence : sequences) driver().Release(sequence);
}

TEST_P(BackendConformanceTest, SeededDrawsDoNotDependOnTheBatch) {
  std::vector<DrivenSequence> sequences(8);
  for (int i = 0; i < 8; ++i) {
    sequences[i].tokens = OtherPrompt(5, 30);
    sequences[i].sampling = {.temperature = 1.3f,
                             .top_k = i % 2 == 0 ? 0 : 30,
                             .top_p = 0.95f,
                             .seed = 77,
                             .logprobs = 3};
    sequences[i].sample = i;
  }
  const std::vector<DrivenSequence> fresh = sequences;
  const std::vector<Transcript> drawn =
      RunTogether(driver(), sequences, 11, 10);
  for (DrivenSequence& sequence : sequences) driver().Release(sequence);
  for (int i : {0, 3, 6}) {
    SCOPED_TRACE(i);
    ExpectSame(drawn[i], Alone(fresh[i], kBigChunk, 10));
  }
  int different = 0;
  for (int i = 1; i < 8; ++i) {
    different += drawn[i][0].token != drawn[0][0].token ||
                 drawn[i][1].token != drawn[0][1].token;
  }
  EXPECT_GT(different, 3);
}

TEST_P(BackendConformanceTest, FullStepsRun) {
  const BackendCaps& caps = driver().backend().caps();
  std::vector<DrivenSequence> sequences(caps.max_sequences);
  std::vector<StepPart> parts;
  for (DrivenSequence& sequence : sequences) {
    const int rows = caps.max_rows / caps.max_sequences;
    sequence.tokens = OtherPrompt(static_cast<int>(parts.size() % 4), rows);
    parts.push_back({.sequence = &sequence, .rows = rows, .sampled = 1});
  }
  const Transcript drawn = driver().Step(parts);
  for (size_t i = 4; i < drawn.size(); ++i) {
    EXPECT_TRUE(SameBits(drawn[i], drawn[i % 4])) << i;
  }
  for (DrivenSequence& sequence : sequences) driver().Release(sequence);
}

TEST_P(BackendConformanceTest, ProgressRisesToAllLayersBeforeTheResult) {
  DrivenSequence sequence;
  sequence.tokens = OtherPrompt(6, 20);
  const std::vector<BackendEvent> events = driver().RunForEvents(
      driver().Plan({{.sequence = &sequence, .rows = 20, .sampled = 1}}));
  int done = 0;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const StepProgress& progress = std::get<StepProgress>(events[i]);
    EXPECT_EQ(progress.step, std::get<StepResult>(events.back()).step);
    EXPECT_GT(progress.layers_done, done);
    done = progress.layers_done;
  }
  const bool promised = driver().backend().caps().layer_progress;
  EXPECT_EQ(done, promised ? spec().layers : 0);
  driver().Release(sequence);
}

// Where the byte with the highest exponent bit of any number lies: of an
// element, or where elements are integers of a scale.
uint64_t ByteWithExponent(const KvLayout& layout, SeededRandom& random) {
  const int bytes = Traits(layout.type).bits / 8;
  if (Traits(layout.type).scale_group == 0) {
    return (random.Below(layout.block_bytes() / bytes) + 1) * bytes - 1;
  }
  const KvHeadLayout head = layout.head();
  const bool keys = random.Below(2) == 0;
  const uint32_t first = keys ? head.key_scales : head.value_scales;
  const uint32_t last = keys ? head.values : head.bytes;
  return random.Below(layout.layers) * layout.layer_bytes() +
         random.Below(layout.kv_heads) * head.bytes + first +
         random.Below((last - first) / 2) * 2 + 1;
}

// Pages are really read: the highest exponent bit of any filled number shows.
TEST_P(BackendConformanceTest, AFlippedBitInAPageChangesTheLogits) {
  constexpr uint8_t kHighestExponentBit = 0x40;  // of its byte
  DrivenSequence sequence;
  sequence.tokens = OtherPrompt(7, 2 * kBlockTokens + 1);
  const Transcript clean = driver().Prefill(sequence, kBigChunk);
  const KvLayout& layout = driver().backend().kv_layout();
  absl::Span<uint8_t> block = driver().block(sequence.blocks[0]);
  SeededRandom random(7);
  for (int flips = 0; flips < 8;) {
    uint8_t& byte = block[ByteWithExponent(layout, random)];
    if (byte & kHighestExponentBit) continue;  // small values become huge
    byte ^= kHighestExponentBit;
    sequence.computed = 2 * kBlockTokens;
    StepPlan plan = driver().Plan({{.sequence = &sequence}});
    const StepResult spoiled = driver().Run(std::move(plan));
    EXPECT_FALSE(spoiled.status.ok() && SameBits(spoiled.sampled[0], clean[0]))
        << flips;
    byte ^= kHighestExponentBit;
    ++flips;
  }
  sequence.computed = 2 * kBlockTokens;
  ExpectSame(driver().Prefill(sequence, 1), clean);
  driver().Release(sequence);
}

// Pages that hold no numbers fail the step, which names a row of the damaged
// sequence, and harm no later step.
TEST_P(BackendConformanceTest, DamagedPagesFailTheStepAndNothingElse) {
  std::vector<DrivenSequence> sequences(2);
  for (DrivenSequence& sequence : sequences) {
    sequence.tokens = OtherPrompt(8, kBlockTokens);
    driver().Prefill(sequence, kBigChunk, 0);
    sequence.tokens.push_back(5);
  }
  absl::Span<uint8_t> block = driver().block(sequences[1].blocks[0]);
  const std::vector<uint8_t> saved(block.begin(), block.end());
  std::fill(block.begin(), block.end(), 0xff);
  const StepPlan plan =
      driver().Plan({{.sequence = &sequences[0]}, {.sequence = &sequences[1]}});
  const StepResult spoiled = driver().Run(plan);
  EXPECT_EQ(spoiled.status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(spoiled.status.message().find("row 1"), absl::string_view::npos)
      << spoiled.status;
  std::copy(saved.begin(), saved.end(), block.begin());
  const StepResult after = driver().Run(plan);
  ASSERT_TRUE(after.status.ok()) << after.status;
  EXPECT_TRUE(SameBits(after.sampled[0], after.sampled[1]));
  for (DrivenSequence& sequence : sequences) driver().Release(sequence);
}

}  // namespace penstock
