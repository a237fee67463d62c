#include "common/model/utf8.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace penstock {
namespace {

// What a lead byte asks for: the whole length (0: cannot lead) and the range
// of the second byte; later bytes are 80..BF.
struct Lead {
  int length;
  uint8_t second_min;
  uint8_t second_max;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Step StepUtf8(absl::string_view bytes) {
  CHECK(!bytes.empty()) << "no bytes to step over";
  const Lead lead = LeadOf(static_cast<uint8_t>(bytes[0]));
  if (lead.length == 0) return {Utf8Step::Kind::kIllFormed, 1};
  for (int i = 1; i < lead.length; ++i) {
    if (static_cast<size_t>(i) == bytes.size()) {
      return {Utf8Step::Kind::kUnfinished, i};
    }
    const auto byte = static_cast<uint8_t>(bytes[i]);
    const uint8_t low = i == 1 ? lead.second_min : 0x80;
    const uint8_t high = i == 1 ? lead.second_max : 0xBF;
    if (byte < low || byte > high) return {Utf8Step::Kind::kIllFormed, i};
  }
  return {Utf8Step::Kind::kCharacter, lead.length};
}

size_t FindInvalidUtf8(absl::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= sizeof(uint64_t)) {
      uint64_t word;
      std::memcpy(&word, text.data() + at, sizeof(word));
      if ((word & 0x8080808080808080u) == 0) {
        at += sizeof(word);
        continue;
      }
    }
    const Utf8Step step = StepUtf8(text.substr(at));
    if (step.kind != Utf8Step::Kind::kCharacter) return at;
    at += step.length;
  }
  return absl::string_view::npos;
}

absl::Status CheckUtf8(absl::string_view field, absl::string_view text) {
  const size_t at = FindInvalidUtf8(text);
  if (at == absl::string_view::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, " is not UTF-8: byte 0x",
      absl::Hex(static_cast<uint8_t>(text[at]), absl::kZeroPad2), " at offset ",
      at, " of ", text.size(), "; send the text as UTF-8"));
}

char32_t DecodeUtf8(absl::string_view text) {
  const int length = Utf8Length(text, 0);
  const auto first = static_cast<uint8_t>(text[0]);
  if (length == 1) return first;
  char32_t code_point = first & (0x7F >> length);
  for (int i = 1; i < length; ++i) {
    code_point = code_point << 6 | (static_cast<uint8_t>(text[i]) & 0x3F);
  }
  return code_point;
}

size_t CountUtf8(absl::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (c & 0xC0) != 0x80;
  return count;
}

int Utf8Length(absl::string_view text, size_t offset) {
  CHECK(offset < text.size()) << "no character at " << offset;
  const int length = LeadOf(static_cast<uint8_t>(text[offset])).length;
  CHECK(length > 0 && offset + length <= text.size())
      << "not a character at " << offset;
  return length;
}

std::string EncodeUtf8(char32_t code_point) {
  CHECK(code_point <= 0x10FFFF) << "not a code point";
  const auto continuation = [code_point](int shift) {
    return static_cast<char>(0x80 | (code_point >> shift & 0x3F));
  };
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  if (code_point < 0x800) {
    return {static_cast<char>(0xC0 | code_point >> 6), continuation(0)};
  }
  if (code_point < 0x10000) {
    return {static_cast<char>(0xE0 | code_point >> 12), continuation(6),
            continuation(0)};
  }
  return {static_cast<char>(0xF0 | code_point >> 18), continuation(12),
          continuation(6), continuation(0)};
}

}  // namespace penstock
