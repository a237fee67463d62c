#include "common/model/text/named_pre_tokenizers.h"

#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/model/text/word_patterns.h"

namespace penstock {
namespace {

// The words of DeepSeek LLM and V2: letters that have case.
constexpr absl::string_view kCasedLetters =
    R"(\s?[)"
    R"(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-)"
    R"(\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377})"
    R"(\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})"
    R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556})"
    R"(\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-)"
    R"(\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
    R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-)"
    R"(\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D})"
    R"(\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-)"
    R"(\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-)"
    R"(\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A})"
    R"(-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-)"
    R"(\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-)"
    R"(\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E})"
    R"(\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-)"
    R"(\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3})"
    R"(\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0})"
    R"(-\x{118DF}\x{1E900}-\x{1E943})"
    R"(]+)";

// Rows of at most this many patterns, each of which cuts what the one before it
// left.
constexpr int kMaxPatterns = 6;

struct Row {
  absl::string_view name;
  absl::string_view patterns[kMaxPatterns];
  bool nfc = false;
  bool ignore_merges = false;
};

constexpr bool kNfc = true;
constexpr bool kAsIs = false;
constexpr bool kWholeTokens = true;

constexpr Row kRows[] = {
    // GPT-2 and what was trained in its manner.
    {"default", {kGpt2Pattern}},
    {"gpt-2", {kGpt2Pattern}},
    {"phi-2", {kGpt2Pattern}},
    {"mpt", {kGpt2Pattern}},
    {"roberta-bpe", {kGpt2Pattern}},
    {"olmo", {kGpt2Pattern}, kNfc},
    // SmolLM 1 and 2, Granite 3, StarCoder: numerals one by one.
    {"smollm", {kNumeralPattern, kGpt2Pattern}},
    {"starcoder", {kNumeralPattern, kGpt2Pattern}},
    {"refact", {kNumeralPattern, kGpt2Pattern}},
    {"command-r", {kNumeralPattern, kGpt2Pattern}},
    {"codeshell", {kNumeralPattern, kGpt2Pattern}},
    {"minerva-7b", {kNumeralPattern, kGpt2Pattern}},
    // Llama 3, SmolLM 3.
    {"llama3", {kCl100kPattern}, kAsIs, kWholeTokens},
    {"llama-v3", {kCl100kPattern}, kAsIs, kWholeTokens},
    {"llama-bpe", {kCl100kPattern}, kAsIs, kWholeTokens},
    {"smaug-bpe", {kCl100kPattern}},
    {"falcon3", {kCl100kPattern}, kAsIs, kWholeTokens},
    {"lfm2", {kCl100kPattern}, kAsIs, kWholeTokens},
    // OLMo 2, Granite 4.
    {"dbrx", {kCl100kPattern}},
    {"granite-docling", {kCl100kPattern}},
    {"glm4", {kCl100kPattern}},
    // Qwen 2, 2.5 and 3.
    {"qwen2", {kQwen2Pattern}, kNfc},
    {"deepseek-r1-qwen", {kQwen2Pattern}, kNfc},
    {"qwen35", {kQwen35Pattern}, kNfc},
    {"gpt-4o", {kO200kPattern}},
    {"llama4", {kO200kPattern}},
    {"tekken", {kTekkenPattern}, kAsIs, kWholeTokens},
    {"deepseek-llm",
     {R"([\r\n])", kCasedLetters,
      R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F})"
      R"(\x{3000}-\x{3002}]+)",
      R"(\s+$)", R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)",
      kNumeralPattern}},
    {"deepseek-coder",
     {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
      R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)",
      kNumeralPattern}},
    {"deepseek-v3", {kThreeNumeralsPattern, kCjkPattern, kDeepSeekPattern}},
    {"hunyuan-dense", {kThreeNumeralsPattern, kCjkPattern, kDeepSeekPattern}},
};

}  // namespace

absl::StatusOr<NamedPreTokenizer> FindPreTokenizer(absl::string_view name) {
  std::string known;
  for (const Row& row : kRows) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", row.name);
    if (row.name != name) continue;
    NamedPreTokenizer found;
    found.ignore_merges = row.ignore_merges;
    if (row.nfc) {
      found.normalizers.emplace_back().kind = NormalizerStep::Kind::kNfc;
    }
    for (const absl::string_view pattern : row.patterns) {
      if (pattern.empty()) break;
      PreTokenizerStep step;
      step.pattern = std::string(pattern);
      found.steps.push_back(std::move(step));
    }
    return found;
  }
  return absl::UnimplementedError(
      absl::StrCat("tokenizer.ggml.pre: pre-tokenizer '", name,
                   "' is not known to this build (known: ", known, ")"));
}

std::vector<absl::string_view> PreTokenizerNames() {
  std::vector<absl::string_view> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

}  // namespace penstock
