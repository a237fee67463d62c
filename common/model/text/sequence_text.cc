#include "common/model/text/sequence_text.h"

#include <utility>

#include "common/base/check.h"

namespace penstock {

SequenceText::SequenceText(const Tokenizer* tokenizer,
                           std::vector<std::string> stops, Start start)
    : tokenizer_(tokenizer), matcher_(std::move(stops)) {
  CHECK(tokenizer_ != nullptr) << "no tokenizer";
  strip_space_ = start == Start::kBegins && tokenizer_->strip_first_space();
  CHECK(matcher_.stops().size() <= kMaxStops) << "too many stop strings";
  for (const std::string& stop : matcher_.stops()) {
    CHECK(stop.size() <= kMaxStopBytes) << "stop string too long";
  }
}

absl::string_view SequenceText::Bytes(TokenId id) {
  absl::string_view bytes = tokenizer_->TokenBytes(id);
  if (strip_space_ && !bytes.empty()) {
    if (bytes[0] == ' ') bytes.remove_prefix(1);
    strip_space_ = false;
  }
  return bytes;
}

SequenceText::Result SequenceText::Push(TokenId id) {
  if (tokenizer_->IsSpecial(id)) return {};
  return matcher_.Push(assembler_.Push(Bytes(id)));
}

SequenceText::Result SequenceText::PushUnsearched(TokenId id) {
  if (tokenizer_->IsSpecial(id)) return {};
  std::string text = matcher_.Flush();
  text += assembler_.Push(Bytes(id));
  return {std::move(text), false};
}

SequenceText::Result SequenceText::Flush() {
  Result result = matcher_.Push(assembler_.Flush());
  if (!result.stopped) result.text += matcher_.Flush();
  return result;
}

}  // namespace penstock
