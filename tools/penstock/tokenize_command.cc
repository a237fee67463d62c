#include <iostream>
#include <memory>
#include <string>

#include "common/base/status_macros.h"
#include "common/model/files/model_file.h"
#include "common/model/text/tokenizer.h"
#include "tools/penstock/command.h"
#include "tools/penstock/text_lines.h"

namespace penstock {
namespace {

struct Options {
  std::string model;
  bool json = false;
  bool plain = false;

  LineFormat format() const {
    return json ? LineFormat::kJson : LineFormat::kText;
  }
};

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(
    const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> file, OpenModelFile(path));
  return CreateTokenizer(file->vocabulary());
}

absl::Status Tokenize(const Options& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer,
                   OpenTokenizer(options.model));
  return TokenizeLines(
      *tokenizer, options.format(),
      options.plain ? SpecialTokens::kPlain : SpecialTokens::kParse, std::cin,
      std::cout);
}

absl::Status Detokenize(const Options& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer,
                   OpenTokenizer(options.model));
  return DetokenizeLines(*tokenizer, options.format(), std::cin, std::cout);
}

}  // namespace

void AddTokenizeCommand(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("tokenize", "Token ids of each line of stdin.");
  auto options = std::make_shared<Options>();
  command->add_option("--model", options->model, "GGUF file")->required();
  command->add_flag("--json", options->json,
                    R"(lines of {"text", "parse_special"} in, {"ids"} out)");
  command->add_flag("--plain", options->plain,
                    "text never becomes a special token");
  command->callback([options, &action] {
    action = [options] { return Tokenize(*options); };
  });
}

void AddDetokenizeCommand(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("detokenize", "Text of each line of ids of stdin.");
  auto options = std::make_shared<Options>();
  command->add_option("--model", options->model, "GGUF file")->required();
  command->add_flag("--json", options->json,
                    R"(lines of {"ids"} in, {"text"} out)");
  command->callback([options, &action] {
    action = [options] { return Detokenize(*options); };
  });
}

}  // namespace penstock
