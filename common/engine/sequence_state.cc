#include "common/engine/sequence_state.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

constexpr uint32_t kMagic = 0x51455350;  // "PSEQ"
constexpr uint32_t kVersion = 2;

template <typename T>
void Append(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
  }
}

void Append(std::string& out, float value) {
  Append(out, std::bit_cast<uint32_t>(value));
}

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("sequence state: ", what));
}

// Takes numbers off the front of the bytes that are left.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  absl::StatusOr<T> Take(absl::string_view field) {
    if (bytes_.size() < sizeof(T)) {
      return Bad(absl::StrCat("it ends inside ", field));
    }
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value |= uint64_t{static_cast<uint8_t>(bytes_[i])} << (8 * i);
    }
    bytes_.remove_prefix(sizeof(T));
    return static_cast<T>(value);
  }

  absl::StatusOr<float> TakeNumber(absl::string_view field) {
    ASSIGN_OR_RETURN(uint32_t bits, Take<uint32_t>(field));
    float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) return Bad(absl::StrCat(field, " is no number"));
    return value;
  }

  absl::StatusOr<TokenId> TakeToken(const Tokenizer& tokenizer) {
    ASSIGN_OR_RETURN(uint32_t token, Take<uint32_t>("tokens"));
    if (token >= static_cast<uint32_t>(tokenizer.vocab_size())) {
      return Bad(absl::StrCat("token ", token, " is outside the vocabulary"));
    }
    return static_cast<TokenId>(token);
  }

  bool empty() const { return bytes_.empty(); }

 private:
  absl::string_view bytes_;
};

absl::Status Contradiction(absl::string_view field) {
  return Bad(absl::StrCat("it contradicts the request's ", field));
}

// `most`: of the best tokens beside the drawn one.
absl::StatusOr<SampledToken> TakeDraw(Reader& reader,
                                      const Tokenizer& tokenizer, int most) {
  SampledToken drawn;
  ASSIGN_OR_RETURN(drawn.token, reader.TakeToken(tokenizer));
  ASSIGN_OR_RETURN(drawn.logprobs.logprob,
                   reader.TakeNumber("log-probability"));
  ASSIGN_OR_RETURN(drawn.mirostat_mu, reader.TakeNumber("mirostat_mu"));
  if (!std::isfinite(drawn.mirostat_mu)) return Bad("mirostat_mu is infinite");
  ASSIGN_OR_RETURN(uint32_t best, reader.Take<uint32_t>("best tokens"));
  if (best > static_cast<uint32_t>(std::max(most, 0))) {
    return Bad(absl::StrCat(best, " best tokens; at most ", most, " asked"));
  }
  for (uint32_t i = 0; i < best; ++i) {
    ASSIGN_OR_RETURN(TokenId token, reader.TakeToken(tokenizer));
    ASSIGN_OR_RETURN(float logprob, reader.TakeNumber("log-probability"));
    drawn.logprobs.top.emplace_back(token, logprob);
  }
  return drawn;
}

absl::StatusOr<ResumedAnswer> TakeAnswer(Reader& reader, const Sequence& root,
                                         int sample,
                                         const Tokenizer& tokenizer) {
  const bool beam = root.request().beam.width > 0;
  ResumedAnswer answer;
  answer.sequence = root.Fork(sample);
  ASSIGN_OR_RETURN(uint32_t draws, reader.Take<uint32_t>("draws"));
  if (draws == 0 || (beam && draws > 1)) {
    return Bad(absl::StrCat("an answer of ", draws, " draws"));
  }
  const int most = root.Draws(0)[0].params.logprobs;
  for (uint32_t i = 0; i < draws; ++i) {
    if (answer.ended()) return Bad("an answer goes on after its end");
    ASSIGN_OR_RETURN(SampledToken drawn, TakeDraw(reader, tokenizer, most));
    if (beam && drawn.logprobs.top.empty()) {
      return Bad("a beam has nothing to go on with");
    }
    if (!beam) answer.made.push_back(answer.sequence->Append(drawn));
    answer.drawn.push_back(std::move(drawn));
  }
  return answer;
}

}  // namespace

std::string SerializeState(const GenerateRequest& request,
                           absl::Span<const AnswerDraws> answers) {
  std::string out;
  Append(out, kMagic);
  Append(out, kVersion);
  Append<uint32_t>(out, request.prompt.size());
  for (TokenId token : request.prompt) Append<uint32_t>(out, token);
  Append<uint64_t>(out, request.sampling.seed);
  Append<uint32_t>(out, answers.size());
  for (const AnswerDraws& answer : answers) {
    Append<uint32_t>(out, answer.size());
    for (const SampledToken& drawn : answer) {
      Append<uint32_t>(out, drawn.token);
      Append(out, drawn.logprobs.logprob);
      Append(out, drawn.mirostat_mu);
      Append<uint32_t>(out, drawn.logprobs.top.size());
      for (const auto& [token, logprob] : drawn.logprobs.top) {
        Append<uint32_t>(out, token);
        Append(out, logprob);
      }
    }
  }
  return out;
}

absl::StatusOr<std::vector<ResumedAnswer>> ParseState(
    absl::string_view state, const GenerateRequest& request, BlockHash root,
    const Tokenizer* tokenizer, int context_length) {
  Reader reader(state);
  ASSIGN_OR_RETURN(uint32_t magic, reader.Take<uint32_t>("magic"));
  if (magic != kMagic) return Bad("wrong magic");
  ASSIGN_OR_RETURN(uint32_t version, reader.Take<uint32_t>("version"));
  if (version != kVersion) {
    return absl::UnimplementedError(
        absl::StrCat("sequence state version ", version,
                     " is not known to this build (it knows ", kVersion, ")"));
  }
  ASSIGN_OR_RETURN(uint32_t prompt, reader.Take<uint32_t>("prompt length"));
  if (prompt != request.prompt.size()) return Contradiction("prompt length");
  for (TokenId expected : request.prompt) {
    ASSIGN_OR_RETURN(TokenId token, reader.TakeToken(*tokenizer));
    if (token != expected) return Contradiction("prompt");
  }
  ASSIGN_OR_RETURN(uint64_t seed, reader.Take<uint64_t>("seed"));
  if (seed != request.sampling.seed) return Contradiction("seed");
  const Sequence first(request, root, tokenizer, context_length);
  ASSIGN_OR_RETURN(uint32_t count, reader.Take<uint32_t>("answers"));
  if (count != first.Draws(0).size()) return Contradiction("answers");
  std::vector<ResumedAnswer> answers;
  for (uint32_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(
        ResumedAnswer answer,
        TakeAnswer(reader, first, static_cast<int>(i), *tokenizer));
    answers.push_back(std::move(answer));
  }
  if (!reader.empty()) return Bad("it goes on after the last answer");
  return answers;
}

}  // namespace penstock
