// How fast the real model's tokenizer is on a megabyte of ordinary text and of
// the worst. Run it where models/ is.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/base/check.h"
#include "common/model/files/model_file.h"
#include "common/model/text/chat_template.h"
#include "common/model/text/tokenizer.h"

namespace penstock {
namespace {

const ModelFile& Model() {
  static const ModelFile* const model = [] {
    auto file = OpenModelFile("models/SmolLM2-135M-Instruct.Q4_1.gguf");
    CHECK(file.ok()) << file.status().ToString();
    return file->release();
  }();
  return *model;
}

const Tokenizer& RealTokenizer() {
  static const Tokenizer* const tokenizer =
      CreateTokenizer(Model().vocabulary())->release();
  return *tokenizer;
}

std::string Megabyte(const std::string& unit) {
  std::string text;
  while (text.size() < (1 << 20)) text += unit;
  return text;
}

void Encode(benchmark::State& state, const std::string& unit) {
  const std::string text = Megabyte(unit);
  for (auto _ : state) {
    auto ids = RealTokenizer().Encode(text, SpecialTokens::kParse);
    CHECK(ids.ok()) << ids.status().ToString();
    benchmark::DoNotOptimize(ids->data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(text.size()));
}

BENCHMARK_CAPTURE(Encode, prose,
                  "It is a truth universally acknowledged, that a single man "
                  "in possession of a good fortune, must be in want of a "
                  "wife. ");
BENCHMARK_CAPTURE(Encode, code,
                  "  for (int i = 0; i < 42; ++i) {\n\tx[i]++;\n");
BENCHMARK_CAPTURE(Encode, one_letter, "a");
BENCHMARK_CAPTURE(Encode, letters, "abcdefghijklmnopqrstuvwxyz");
BENCHMARK_CAPTURE(Encode, spaces, " ");
BENCHMARK_CAPTURE(Encode, digits, "7");
BENCHMARK_CAPTURE(Encode, emoji, "\xF0\x9F\x98\x80");
BENCHMARK_CAPTURE(Encode, special, "<|im_end|>");
BENCHMARK_CAPTURE(Encode, nearly_special, "<|im_en");

void Create(benchmark::State& state) {
  for (auto _ : state) {
    auto tokenizer = CreateTokenizer(Model().vocabulary());
    CHECK(tokenizer.ok()) << tokenizer.status().ToString();
  }
}
BENCHMARK(Create)->Unit(benchmark::kMillisecond);

void RenderChat(benchmark::State& state) {
  const auto chat = ChatTemplate::Parse(Model().chat_template());
  CHECK(chat.ok()) << chat.status().ToString();
  std::vector<ChatMessage> messages;
  for (int64_t i = 0; i < state.range(0); ++i) {
    messages.push_back({i % 2 == 0 ? "user" : "assistant",
                        "What is the name of my cat, and why?"});
  }
  for (auto _ : state) {
    auto pieces = (*chat)->Render(messages, true);
    CHECK(pieces.ok()) << pieces.status().ToString();
  }
}
BENCHMARK(RenderChat)->Arg(1)->Arg(100)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
