#include "tests/contract/family_cases.h"

#include <cstring>
#include <fstream>

#include "absl/strings/escaping.h"
#include "common/base/check.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

// Rows of little-endian floats in base64.
std::vector<std::vector<float>> DecodeRows(const nlohmann::json& rows,
                                           size_t vocab_size) {
  std::vector<std::vector<float>> decoded;
  for (const auto& row : rows) {
    std::string bytes;
    CHECK(absl::Base64Unescape(row.get<std::string>(), &bytes));
    CHECK(bytes.size() == vocab_size * sizeof(float));
    std::memcpy(decoded.emplace_back(vocab_size).data(), bytes.data(),
                bytes.size());
  }
  return decoded;
}

}  // namespace

std::vector<FamilyCase> ReadFamilyCases(const std::string& folder) {
  const std::string path = folder + "/expected.json";
  std::ifstream file(path);
  CHECK(file.good()) << path << " is missing";
  const nlohmann::json expected = nlohmann::json::parse(file);
  const size_t vocab_size = expected.at("vocab_size");
  std::vector<FamilyCase> cases;
  for (const auto& prompt : expected.at("prompts")) {
    FamilyCase read;
    prompt.at("name").get_to(read.name);
    prompt.at("ids").get_to(read.ids);
    prompt.at("positions").get_to(read.positions);
    read.logits = DecodeRows(prompt.at("logits"), vocab_size);
    read.gguf_logits = prompt.contains("gguf_logits")
                           ? DecodeRows(prompt.at("gguf_logits"), vocab_size)
                           : read.logits;
    CHECK(read.logits.size() == read.positions.size());
    CHECK(read.gguf_logits.size() == read.positions.size());
    cases.push_back(std::move(read));
  }
  return cases;
}

}  // namespace penstock
