#include "common/engine/sequence_state.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

constexpr uint32_t kMagic = 0x51455350;  // "PSEQ"
constexpr uint32_t kVersion = 1;

template <typename T>
void Append(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
  }
}

// Takes integers off the front of the bytes that are left.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  absl::StatusOr<T> Take(absl::string_view field) {
    if (bytes_.size() < sizeof(T)) {
      return absl::InvalidArgumentError(
          absl::StrCat("sequence state ends inside ", field));
    }
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value |= uint64_t{static_cast<uint8_t>(bytes_[i])} << (8 * i);
    }
    bytes_.remove_prefix(sizeof(T));
    return static_cast<T>(value);
  }

  absl::string_view rest() const { return bytes_; }

 private:
  absl::string_view bytes_;
};

absl::Status Contradiction(absl::string_view field) {
  return absl::InvalidArgumentError(
      absl::StrCat("sequence state contradicts the request's ", field));
}

absl::StatusOr<std::vector<TokenId>> TakeTokens(Reader& reader,
                                                const GenerateRequest& request,
                                                const Tokenizer& tokenizer,
                                                int context_length) {
  ASSIGN_OR_RETURN(uint32_t prompt, reader.Take<uint32_t>("prompt length"));
  ASSIGN_OR_RETURN(uint32_t total, reader.Take<uint32_t>("token count"));
  if (prompt != request.prompt.size()) return Contradiction("prompt length");
  // At least one generated token travels, and room for one more is left.
  if (total <= prompt || total > static_cast<uint32_t>(context_length)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence state has ", total, " tokens; it must have ",
                     prompt + 1, " to ", context_length));
  }
  std::vector<TokenId> tokens;
  tokens.reserve(total);
  for (uint32_t i = 0; i < total; ++i) {
    ASSIGN_OR_RETURN(uint32_t token, reader.Take<uint32_t>("tokens"));
    if (token >= static_cast<uint32_t>(tokenizer.vocab_size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "sequence state token ", i, " is outside the vocabulary"));
    }
    tokens.push_back(static_cast<TokenId>(token));
  }
  if (!std::equal(request.prompt.begin(), request.prompt.end(),
                  tokens.begin())) {
    return Contradiction("prompt");
  }
  return tokens;
}

}  // namespace

std::string SerializeState(const Sequence& sequence) {
  std::string out;
  Append(out, kMagic);
  Append(out, kVersion);
  Append<uint32_t>(out, sequence.prompt_tokens());
  Append<uint32_t>(out, sequence.length());
  for (TokenId token : sequence.tokens()) Append<uint32_t>(out, token);
  Append<uint64_t>(out, sequence.request().sampling.seed);
  out += sequence.text().Serialize();
  return out;
}

absl::StatusOr<std::unique_ptr<Sequence>> ParseState(
    absl::string_view state, const GenerateRequest& request, BlockHash root,
    const Tokenizer* tokenizer, int context_length) {
  Reader reader(state);
  ASSIGN_OR_RETURN(uint32_t magic, reader.Take<uint32_t>("magic"));
  if (magic != kMagic) {
    return absl::InvalidArgumentError("sequence state has a wrong magic");
  }
  ASSIGN_OR_RETURN(uint32_t version, reader.Take<uint32_t>("version"));
  if (version != kVersion) {
    return absl::UnimplementedError(
        absl::StrCat("sequence state version ", version,
                     " is not known to this build (it knows ", kVersion, ")"));
  }
  ASSIGN_OR_RETURN(std::vector<TokenId> tokens,
                   TakeTokens(reader, request, *tokenizer, context_length));
  ASSIGN_OR_RETURN(uint64_t seed, reader.Take<uint64_t>("seed"));
  if (seed != request.sampling.seed) return Contradiction("seed");
  ASSIGN_OR_RETURN(SequenceText text,
                   SequenceText::Parse(reader.rest(), tokenizer));
  auto sequence =
      std::make_unique<Sequence>(request, root, tokenizer, context_length);
  tokens.erase(tokens.begin(), tokens.begin() + request.prompt.size());
  sequence->Resume(std::move(tokens), std::move(text));
  return sequence;
}

}  // namespace penstock
