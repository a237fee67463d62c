#include "tools/penstock/text_lines.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/model/text/text_stream.h"
#include "nlohmann/json.hpp"
#include "tools/penstock/json_line.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

// The object on one line. INVALID_ARGUMENT when it is none.
absl::StatusOr<Json> ParseObject(const std::string& line) {
  Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError("not a JSON object");
  }
  return object;
}

absl::StatusOr<std::string> EncodeLine(const Tokenizer& tokenizer,
                                       LineFormat format, SpecialTokens special,
                                       const std::string& line) {
  if (format == LineFormat::kText) {
    ASSIGN_OR_RETURN(std::vector<TokenId> ids, tokenizer.Encode(line, special));
    return absl::StrJoin(ids, " ");
  }
  ASSIGN_OR_RETURN(const Json object, ParseObject(line));
  const auto text = object.find("text");
  if (text == object.end() || !text->is_string()) {
    return absl::InvalidArgumentError("\"text\" must be a string");
  }
  if (const auto parse = object.find("parse_special"); parse != object.end()) {
    if (!parse->is_boolean()) {
      return absl::InvalidArgumentError("\"parse_special\" must be a boolean");
    }
    special = *parse ? SpecialTokens::kParse : SpecialTokens::kPlain;
  }
  ASSIGN_OR_RETURN(
      std::vector<TokenId> ids,
      tokenizer.Encode(text->get_ref<const std::string&>(), special));
  return JsonLine({{"ids", ids}});
}

absl::StatusOr<TokenId> CheckId(const Tokenizer& tokenizer, int64_t id) {
  if (id < 0 || id >= tokenizer.vocab_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "id ", id, " is outside the vocabulary of ", tokenizer.vocab_size()));
  }
  return static_cast<TokenId>(id);
}

absl::StatusOr<std::vector<TokenId>> ParseIds(const Tokenizer& tokenizer,
                                              LineFormat format,
                                              const std::string& line) {
  std::vector<TokenId> ids;
  if (format == LineFormat::kText) {
    for (absl::string_view word :
         absl::StrSplit(line, ' ', absl::SkipWhitespace())) {
      int64_t number = 0;
      if (!absl::SimpleAtoi(word, &number)) {
        return absl::InvalidArgumentError(
            absl::StrCat("\"", word, "\" is not a token id"));
      }
      ASSIGN_OR_RETURN(ids.emplace_back(), CheckId(tokenizer, number));
    }
    return ids;
  }
  ASSIGN_OR_RETURN(const Json object, ParseObject(line));
  const auto array = object.find("ids");
  if (array == object.end() || !array->is_array()) {
    return absl::InvalidArgumentError("\"ids\" must be an array");
  }
  for (const Json& element : *array) {
    if (!element.is_number_integer()) {
      return absl::InvalidArgumentError("\"ids\" must hold integers");
    }
    ASSIGN_OR_RETURN(ids.emplace_back(),
                     CheckId(tokenizer, element.get<int64_t>()));
  }
  return ids;
}

absl::StatusOr<std::string> DecodeLine(const Tokenizer& tokenizer,
                                       LineFormat format,
                                       const std::string& line) {
  ASSIGN_OR_RETURN(const std::vector<TokenId> ids,
                   ParseIds(tokenizer, format, line));
  Utf8Assembler assembler;
  std::string text;
  for (TokenId id : ids) text += assembler.Push(tokenizer.TokenBytes(id));
  text += assembler.Flush();
  return format == LineFormat::kJson ? JsonLine({{"text", text}}) : text;
}

// Runs `convert` over the lines; an error gets the line's number.
template <typename Convert>
absl::Status EachLine(std::istream& in, std::ostream& out, Convert convert) {
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    absl::StatusOr<std::string> converted = convert(line);
    if (!converted.ok()) {
      return absl::Status(
          converted.status().code(),
          absl::StrCat("line ", number, ": ", converted.status().message()));
    }
    // Flushed, so that the commands can be talked to through pipes.
    out << *converted << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TokenizeLines(const Tokenizer& tokenizer, LineFormat format,
                           SpecialTokens special, std::istream& in,
                           std::ostream& out) {
  return EachLine(in, out, [&](const std::string& line) {
    return EncodeLine(tokenizer, format, special, line);
  });
}

absl::Status DetokenizeLines(const Tokenizer& tokenizer, LineFormat format,
                             std::istream& in, std::ostream& out) {
  return EachLine(in, out, [&](const std::string& line) {
    return DecodeLine(tokenizer, format, line);
  });
}

}  // namespace penstock
