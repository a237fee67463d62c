#include "common/model/files/stop_tokens.h"

#include <algorithm>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock {
namespace {

// Spellings of control tokens after which a model has nothing more to say, in
// the order in which they become stop tokens.
constexpr absl::string_view kEndSpellings[] = {
    "<|endoftext|>", "<|end_of_text|>",
    "<|im_end|>",    "<|eot_id|>",
    "<|eom_id|>",    "<|end|>",
    "<|endofturn|>", "<|end_of_turn|>",
    "<end_of_turn>", "<|END_OF_TURN_TOKEN|>",
    "</s>",          "<eos>",
    "<EOT>",         "<｜end▁of▁sentence｜>",
};

void AddStop(TokenId id, std::vector<TokenId>& stops) {
  if (id < 0 || std::find(stops.begin(), stops.end(), id) != stops.end()) {
    return;
  }
  stops.push_back(id);
}

}  // namespace

void FindStopTokens(absl::Span<const TokenId> named, Vocabulary& vocabulary) {
  std::vector<TokenId>& stops = vocabulary.stop_tokens;
  AddStop(vocabulary.eos, stops);
  for (TokenId id : named) AddStop(id, stops);
  for (absl::string_view spelling : kEndSpellings) {
    for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
      if (vocabulary.kinds[i] == TokenKind::kControl &&
          vocabulary.tokens[i] == spelling) {
        AddStop(static_cast<TokenId>(i), stops);
      }
    }
  }
}

}  // namespace penstock
