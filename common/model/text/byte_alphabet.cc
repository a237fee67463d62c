#include "common/model/text/byte_alphabet.h"

#include "common/base/check.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

bool StandsForItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

}  // namespace

ByteAlphabet::ByteAlphabet() {
  bytes_.fill(-1);
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const int code_point = StandsForItself(byte) ? byte : next++;
    bytes_[code_point] = static_cast<int16_t>(byte);
    characters_[byte] = EncodeUtf8(static_cast<char32_t>(code_point));
  }
  CHECK(next == kCodePoints) << "68 bytes have no visible character";
}

absl::optional<std::string> ByteAlphabet::Decode(
    absl::string_view token) const {
  std::string bytes;
  while (!token.empty()) {
    const Utf8Step step = StepUtf8(token);
    if (step.kind != Utf8Step::Kind::kCharacter) return absl::nullopt;
    const char32_t code_point = DecodeUtf8(token);
    if (code_point >= kCodePoints || bytes_[code_point] < 0) {
      return absl::nullopt;
    }
    bytes.push_back(static_cast<char>(bytes_[code_point]));
    token.remove_prefix(step.length);
  }
  return bytes;
}

}  // namespace penstock
