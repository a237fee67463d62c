#include "common/model/text/sequence_text.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

// version u8 (2 while a space in front is still to be left out, else 1), tail,
// stop count u8, stops, held; a string is a u16 length, in little-endian order,
// and its bytes.
constexpr uint8_t kVersion = 1;
constexpr uint8_t kStripVersion = 2;

void AppendString(std::string& out, absl::string_view text) {
  out.push_back(static_cast<char>(text.size() & 0xFF));
  out.push_back(static_cast<char>(text.size() >> 8));
  out.append(text.data(), text.size());
}

absl::Status Bad(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("sequence text: ", field, " ", what));
}

absl::StatusOr<uint8_t> TakeByte(absl::string_view& in,
                                 absl::string_view field) {
  if (in.empty()) return Bad(field, "is missing");
  const auto byte = static_cast<uint8_t>(in[0]);
  in.remove_prefix(1);
  return byte;
}

absl::StatusOr<std::string> TakeString(absl::string_view& in,
                                       absl::string_view field, size_t limit) {
  ASSIGN_OR_RETURN(const size_t low, TakeByte(in, field));
  ASSIGN_OR_RETURN(const size_t high, TakeByte(in, field));
  const size_t size = high << 8 | low;
  if (size > limit) {
    return Bad(field, absl::StrCat("has ", size, " bytes, more than ", limit));
  }
  if (size > in.size()) return Bad(field, "is cut short");
  std::string text(in.substr(0, size));
  in.remove_prefix(size);
  return text;
}

absl::StatusOr<std::vector<std::string>> TakeStops(absl::string_view& in) {
  ASSIGN_OR_RETURN(const size_t count, TakeByte(in, "stop count"));
  if (count > SequenceText::kMaxStops) {
    return Bad("stop count", absl::StrCat("is ", count, ", more than ",
                                          SequenceText::kMaxStops));
  }
  std::vector<std::string> stops;
  for (size_t i = 0; i < count; ++i) {
    const std::string field = absl::StrCat("stop[", i, "]");
    ASSIGN_OR_RETURN(std::string stop,
                     TakeString(in, field, SequenceText::kMaxStopBytes));
    if (stop.empty()) return Bad(field, "is empty");
    if (!IsUtf8(stop)) return Bad(field, "is not UTF-8");
    stops.push_back(std::move(stop));
  }
  return stops;
}

}  // namespace

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

std::string SequenceText::Serialize() const {
  std::string out(1,
                  static_cast<char>(strip_space_ ? kStripVersion : kVersion));
  AppendString(out, assembler_.tail());
  out.push_back(static_cast<char>(matcher_.stops().size()));
  for (const std::string& stop : matcher_.stops()) AppendString(out, stop);
  AppendString(out, matcher_.held());
  return out;
}

absl::StatusOr<SequenceText> SequenceText::Parse(absl::string_view bytes,
                                                 const Tokenizer* tokenizer) {
  ASSIGN_OR_RETURN(const uint8_t version, TakeByte(bytes, "version"));
  if (version != kVersion && version != kStripVersion) {
    return absl::UnimplementedError(absl::StrCat(
        "sequence text: version ", version, " is not known to this build"));
  }
  ASSIGN_OR_RETURN(std::string tail, TakeString(bytes, "tail", 3));
  if (!Utf8Assembler::IsTail(tail)) {
    return Bad("tail", "is not the start of a character");
  }
  ASSIGN_OR_RETURN(std::vector<std::string> stops, TakeStops(bytes));
  ASSIGN_OR_RETURN(const std::string held,
                   TakeString(bytes, "held text", kMaxStopBytes));
  if (!bytes.empty()) {
    return Bad("length", absl::StrCat("leaves ", bytes.size(), " bytes over"));
  }
  SequenceText text(tokenizer, std::move(stops));
  text.strip_space_ = version == kStripVersion;
  text.assembler_ = Utf8Assembler(std::move(tail));
  if (!IsUtf8(held)) return Bad("held text", "is not UTF-8");
  const Result replay = text.matcher_.Push(held);
  if (replay.stopped || !replay.text.empty()) {
    return Bad("held text", "is not the start of a stop string");
  }
  return text;
}

}  // namespace penstock
