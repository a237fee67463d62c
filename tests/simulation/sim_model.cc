#include "tests/simulation/sim_model.h"

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// SplitMix64's finaliser.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

KvLayout SimModel::Layout() {
  KvLayout layout;
  layout.layers = 1;
  layout.kv_heads = 1;
  layout.head_dim = 1;
  layout.value_dim = 1;
  layout.type = KvType::kF32;
  return layout;
}

uint64_t SimModel::Word(TokenId token, int position) {
  return Mix(Mix(token + 1) + position);
}

uint64_t SimModel::Fold(uint64_t state, uint64_t word) {
  return Mix(state ^ word);
}

TokenId SimModel::TokenOf(uint64_t state, uint64_t seed, uint64_t position) {
  // Never the stop token by chance: lengths are the test's to choose.
  return 1 + Mix(state ^ Mix(seed + position)) % (kVocabulary - 1);
}

TokenId SimModel::Next(absl::Span<const TokenId> history, uint64_t seed) {
  uint64_t state = 0;
  for (size_t i = 0; i < history.size(); ++i) {
    state = Fold(state, Word(history[i], static_cast<int>(i)));
  }
  return TokenOf(state, seed, history.size());
}

std::vector<TokenId> SimModel::Generate(std::vector<TokenId> history, int count,
                                        uint64_t seed) {
  std::vector<TokenId> made;
  for (int i = 0; i < count; ++i) {
    made.push_back(Next(history, seed));
    history.push_back(made.back());
  }
  return made;
}

SimTokenizer::SimTokenizer() {
  for (int i = 0; i < SimModel::kVocabulary; ++i) {
    texts_.push_back(absl::StrCat("<", i, ">"));
  }
}

absl::StatusOr<std::vector<TokenId>> SimTokenizer::EncodeRuns(
    absl::Span<const TextRun> runs) const {
  return absl::UnimplementedError("the simulation starts from token ids");
}

absl::string_view SimTokenizer::TokenBytes(TokenId id) const {
  return texts_[id];
}

bool SimTokenizer::IsSpecial(TokenId id) const {
  return id == SimModel::kStopToken;
}

}  // namespace penstock
