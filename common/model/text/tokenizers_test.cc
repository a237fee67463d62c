// Tokenizers in the manner of each family against Hugging Face's `tokenizers`,
// over 10,000 seeded strings each (tests/data/tokenizers).
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/files/gguf_reader.h"
#include "common/model/files/gguf_vocabulary.h"
#include "common/model/files/tokenizer_json/tokenizer_json.h"
#include "common/model/text/tokenizer.h"
#include "common/model/utf8.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<TokenId>;

const char kDir[] = PENSTOCK_TEST_DATA "/tokenizers/";

std::string ReadFile(const std::string& name) {
  std::ifstream in(kDir + name, std::ios::binary);
  EXPECT_TRUE(in) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

// The generator of make.py.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  uint64_t Below(uint64_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % bound;
  }

 private:
  uint64_t state_;
};

class Strings {
 public:
  Strings() : json_(Json::parse(ReadFile("fragments.json"))) {
    fragments_ = json_["fragments"].get<std::vector<std::string>>();
  }
  int count() const { return json_["strings"]; }
  int group() const { return json_["group"]; }
  int plain_group() const { return json_["plain_group"]; }

  std::string Make(int index, const std::vector<std::string>& specials) const {
    Draws draws(index);
    std::string text;
    for (uint64_t i = 1 + draws.Below(14); i > 0; --i) {
      const uint64_t kind = draws.Below(16);
      if (kind == 0 && !specials.empty()) {
        text += specials[draws.Below(specials.size())];
      } else if (kind <= 2) {
        const Json& range =
            json_["ranges"][draws.Below(json_["ranges"].size())];
        const uint64_t first = range[0];
        const uint64_t last = range[1];
        text += EncodeUtf8(
            static_cast<char32_t>(first + draws.Below(last - first + 1)));
      } else {
        const std::string& fragment =
            fragments_[draws.Below(fragments_.size())];
        for (uint64_t n = 1 + (kind == 3 ? draws.Below(4) : 0); n > 0; --n) {
          text += fragment;
        }
      }
    }
    return text;
  }

 private:
  Json json_;
  std::vector<std::string> fragments_;
};

uint64_t Fold(uint64_t state, const Ids& ids) {
  const auto add = [&state](uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) {
      state = (state ^ (value >> shift & 255)) * 0x100000001B3u;
    }
  };
  add(static_cast<uint32_t>(ids.size()));
  for (const TokenId id : ids) add(static_cast<uint32_t>(id));
  return state;
}

std::unique_ptr<Tokenizer> FromJson(const std::string& name) {
  const std::string text = ReadFile(name + ".tokenizer.json");
  const auto content = ReadTokenizerJson({text, "", ""}, 1000);
  EXPECT_TRUE(content.ok()) << content.status();
  if (!content.ok()) return nullptr;
  auto tokenizer = CreateTokenizer(content->vocabulary);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

std::unique_ptr<Tokenizer> FromGguf(const std::string& name) {
  const std::string file = ReadFile(name + ".gguf");
  const absl::Span<const uint8_t> bytes(
      reinterpret_cast<const uint8_t*>(file.data()), file.size());
  const auto reader = GgufReader::Parse(bytes, name);
  EXPECT_TRUE(reader.ok()) << reader.status();
  if (!reader.ok()) return nullptr;
  const auto vocabulary = ReadGgufVocabulary(*reader);
  EXPECT_TRUE(vocabulary.ok()) << vocabulary.status();
  if (!vocabulary.ok()) return nullptr;
  auto tokenizer = CreateTokenizer(*vocabulary);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

Ids Encode(const Tokenizer& tokenizer, const std::string& text,
           SpecialTokens special) {
  const auto ids = tokenizer.Encode(text, special);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.ok() ? *ids : Ids();
}

// All strings, by the hash of each group.
void ExpectHashes(const Tokenizer& tokenizer, const Strings& strings,
                  const std::vector<std::string>& specials,
                  SpecialTokens special, int group, const Json& hashes) {
  ASSERT_EQ(strings.count(), 10000);
  constexpr uint64_t kStart = 0xCBF29CE484222325u;
  uint64_t state = kStart;
  int wrong = 0;
  for (int i = 0; i < strings.count(); ++i) {
    state = Fold(state, Encode(tokenizer, strings.Make(i, specials), special));
    if (i % group != group - 1) continue;
    const std::string hash = absl::StrCat(absl::Hex(state, absl::kZeroPad16));
    if (hash != hashes[i / group]) {
      ++wrong;
      if (wrong <= 3) ADD_FAILURE() << i - group + 1 << " to " << i;
    }
    state = kStart;
  }
  EXPECT_EQ(wrong, 0) << "groups of " << group;
}

// Every string's ids are the library's.
void ExpectTheSameIds(const Tokenizer& tokenizer, const std::string& name) {
  const Strings strings;
  const Json expected = Json::parse(ReadFile(name + ".ids.json"));
  const auto specials = expected["specials"].get<std::vector<std::string>>();
  for (size_t i = 0; i < expected["first"].size(); ++i) {
    const std::string text = strings.Make(static_cast<int>(i), specials);
    ASSERT_EQ(Encode(tokenizer, text, SpecialTokens::kParse),
              expected["first"][i].get<Ids>())
        << "string " << i << ": '" << text << "'";
  }
  ExpectHashes(tokenizer, strings, specials, SpecialTokens::kParse,
               strings.group(), expected["hashes"]);
  ExpectHashes(tokenizer, strings,
               expected["plain_specials"].get<std::vector<std::string>>(),
               SpecialTokens::kPlain, strings.plain_group(),
               expected["plain_hashes"]);
}

class FamilyTest : public testing::TestWithParam<const char*> {};

TEST_P(FamilyTest, TokenizerJsonGivesTheLibrarysIds) {
  const auto tokenizer = FromJson(GetParam());
  ASSERT_NE(tokenizer, nullptr);
  ExpectTheSameIds(*tokenizer, GetParam());
}

class GgufFamilyTest : public testing::TestWithParam<const char*> {};

TEST_P(GgufFamilyTest, GgufGivesTheLibrarysIds) {
  const auto tokenizer = FromGguf(GetParam());
  ASSERT_NE(tokenizer, nullptr);
  ExpectTheSameIds(*tokenizer, GetParam());
}

std::string NameOf(const testing::TestParamInfo<const char*>& info) {
  return info.param;
}

INSTANTIATE_TEST_SUITE_P(All, FamilyTest,
                         testing::Values("gpt2", "olmo", "smollm", "granite",
                                         "llama3", "qwen2", "olmo2", "tekken",
                                         "gpt4o", "deepseek_v2", "deepseek_v3",
                                         "llama2", "mistral", "phi3", "gemma",
                                         "unigram"),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(All, GgufFamilyTest,
                         testing::Values("gpt2", "olmo", "smollm", "granite",
                                         "llama3", "qwen2", "olmo2", "tekken",
                                         "gpt4o", "deepseek_v2", "deepseek_v3",
                                         "llama2", "phi3", "gemma"),
                         NameOf);

}  // namespace
}  // namespace penstock
