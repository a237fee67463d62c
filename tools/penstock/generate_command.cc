#include <cstdint>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/id.h"
#include "common/base/status_macros.h"
#include "common/model/utf8.h"
#include "nlohmann/json.hpp"
#include "tools/penstock/client.h"
#include "tools/penstock/command.h"
#include "tools/penstock/completion.h"
#include "tools/penstock/json_line.h"
#include "tools/penstock/sampling_flags.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

struct Options {
  std::string server = kDefaultServer;
  std::string model;
  std::string prompt = "-";
  std::string prompt_ids;
  bool chat = false;
  SamplingFlags sampling;
  std::optional<double> timeout_seconds;
  bool stats = false;
  bool json = false;
  bool stream_json = false;
};

absl::StatusOr<std::vector<TokenId>> ParsePromptIds(const std::string& text) {
  const Json ids = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<TokenId> prompt;
  bool good = ids.is_array();
  for (size_t i = 0; good && i < ids.size(); ++i) {
    good = ids[i].is_number_integer() && ids[i] >= INT32_MIN &&
           ids[i] <= INT32_MAX;
    if (good) prompt.push_back(ids[i].get<TokenId>());
  }
  if (good) return prompt;
  return absl::InvalidArgumentError(
      "--prompt-ids: not a JSON array of token ids, such as [1, 2, 3]");
}

absl::Status SetPrompt(const Options& options, v1::GenerateRequest* request) {
  if (!options.prompt_ids.empty()) {
    ASSIGN_OR_RETURN(const std::vector<TokenId> ids,
                     ParsePromptIds(options.prompt_ids));
    request->mutable_ids()->mutable_ids()->Add(ids.begin(), ids.end());
    return absl::OkStatus();
  }
  std::string prompt = options.prompt;
  if (prompt == "-") {
    prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
  }
  RETURN_IF_ERROR(CheckUtf8("prompt", prompt));
  if (options.chat) {
    v1::ChatMessage* message = request->mutable_messages()->add_messages();
    message->set_role("user");
    message->set_content(std::move(prompt));
  } else {
    request->set_text(std::move(prompt));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::GenerateRequest> MakeRequest(const Options& options) {
  v1::GenerateRequest request;
  request.set_model(options.model);
  RETURN_IF_ERROR(SetPrompt(options, &request));
  RETURN_IF_ERROR(options.sampling.Fill(&request));
  if (options.timeout_seconds) {
    request.set_timeout_ms(
        static_cast<uint64_t>(*options.timeout_seconds * 1000));
  }
  return request;
}

absl::Status Generate(const Options& options) {
  ASSIGN_OR_RETURN(const v1::GenerateRequest request, MakeRequest(options));
  Client client(options.server);
  RETURN_IF_ERROR(client.WaitForConnection(absl::Seconds(5)));

  grpc::ClientContext context;
  const std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader =
      client.stub().Generate(&context, request);
  Completion completion;
  // Several answers come mixed: they are shown one by one at the end.
  const bool shows_text =
      !options.json && !options.stream_json && !options.sampling.deferred();
  absl::Status broken;
  v1::GenerateResponse response;
  while (broken.ok() && reader->Read(&response)) {
    const absl::StatusOr<std::string> text = completion.Add(response);
    broken = text.status();
    if (!broken.ok()) {
      context.TryCancel();
    } else if (options.stream_json) {
      std::cout << JsonLine(FrameToJson(response)) << std::endl;
    } else if (shows_text) {
      std::cout << *text << std::flush;
    }
  }
  if (shows_text && completion.tokens() > 0) std::cout << std::endl;
  const grpc::Status status = reader->Finish();
  RETURN_IF_ERROR(broken);
  RETURN_IF_ERROR(DescribeFailure(status));
  RETURN_IF_ERROR(completion.CheckFinished());
  if (options.sampling.deferred() && !options.json && !options.stream_json) {
    for (int i = 0; i < completion.answers(); ++i) {
      std::cout << "[" << i << "] " << completion.text(i) << std::endl;
    }
  }
  if (options.stats) std::cerr << completion.Describe() << "\n";
  if (options.json) std::cout << JsonLine(completion.ToJson()) << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddGenerateCommand(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("generate", "One completion, streamed.");
  auto options = std::make_shared<Options>();
  command->add_option("prompt", options->prompt,
                      "text to continue; - reads stdin to its end");
  command->add_option("--prompt-ids", options->prompt_ids,
                      "the prompt as a JSON array of token ids");
  command->add_flag("--chat", options->chat,
                    "the prompt is a user's message for the chat template");
  command->add_option("--server", options->server, "the router's address");
  command->add_option("--model", options->model, "default: what is served");
  options->sampling.AddTo(*command);
  command->add_option("--timeout", options->timeout_seconds, "seconds");
  command->add_flag("--stats", options->stats,
                    "a line on stderr: where and how fast");
  CLI::Option* json =
      command->add_flag("--json", options->json, "one document at the end");
  command
      ->add_flag("--stream-json", options->stream_json,
                 "one JSON object a frame")
      ->excludes(json);
  command->callback([options, &action] {
    action = [options] { return Generate(*options); };
  });
}

}  // namespace penstock
