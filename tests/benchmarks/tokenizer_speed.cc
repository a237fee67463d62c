// How fast texts become tokens, for tokenizer_vs_hf.py.
//   tokenizer_speed MODEL.gguf|tokenizer.json ROUNDS TEXT...
// Prints a line of JSON for each file of text: bytes, tokens, a hash of the
// ids, and the shortest time of the rounds in seconds of CPU: all of it is one
// thread's, and other work on the machine does not count.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/model/files/model_file.h"
#include "common/model/files/tokenizer_json/tokenizer_json.h"
#include "common/model/text/tokenizer.h"

namespace penstock {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  CHECK(in) << "cannot read " << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Open(const std::string& path) {
  if (absl::EndsWith(path, ".json")) {
    constexpr int64_t kRows = 1 << 20;
    const std::string text = ReadFile(path);
    ASSIGN_OR_RETURN(const TokenizerContent content,
                     ReadTokenizerJson({text, "", ""}, kRows));
    return CreateTokenizer(content.vocabulary);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ModelFile> model, OpenModelFile(path));
  return CreateTokenizer(model->vocabulary());
}

uint64_t Hash(const std::vector<TokenId>& ids) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const TokenId id : ids) hash = (hash ^ id) * 0x100000001B3u;
  return hash;
}

void Measure(const Tokenizer& tokenizer, const std::string& path, int rounds) {
  const std::string text = ReadFile(path);
  double best = 1e9;
  std::vector<TokenId> ids;
  for (int round = 0; round < rounds; ++round) {
    const std::clock_t begin = std::clock();
    auto encoded = tokenizer.Encode(text, SpecialTokens::kParse);
    const double took =
        static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    CHECK(encoded.ok()) << encoded.status().ToString();
    ids = *std::move(encoded);
    best = std::min(best, took);
  }
  std::printf(
      "{\"bytes\": %zu, \"tokens\": %zu, \"hash\": \"%016llx\", "
      "\"seconds\": %.6f}\n",
      text.size(), ids.size(), static_cast<unsigned long long>(Hash(ids)),
      best);
}

int Main(int argc, char** argv) {
  int rounds = 0;
  if (argc < 4 || !absl::SimpleAtoi(argv[2], &rounds) || rounds < 1) {
    std::fprintf(stderr, "usage: %s MODEL.gguf|tokenizer.json ROUNDS TEXT...\n",
                 argv[0]);
    return 2;
  }
  const auto tokenizer = Open(argv[1]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.status().ToString().c_str());
    return 1;
  }
  for (int i = 3; i < argc; ++i) Measure(**tokenizer, argv[i], rounds);
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Main(argc, argv); }
