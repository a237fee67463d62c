#include <sys/eventfd.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/model/utf8.h"
#include "nlohmann/json.hpp"
#include "tools/penstock/client.h"
#include "tools/penstock/command.h"
#include "tools/penstock/completion.h"
#include "tools/penstock/terminal.h"

namespace penstock {
namespace {

constexpr char kHelp[] =
    "/clear      forget the conversation\n"
    "/save FILE  write it as JSON\n"
    "/quit       leave, as Ctrl-D does\n"
    "Ctrl-C ends an answer early.\n";

struct Options {
  std::string server = kDefaultServer;
  std::string model;
  std::string system;
  int max_tokens = 512;
  std::optional<float> temperature;
  std::optional<uint64_t> seed;
};

class Conversation {
 public:
  explicit Conversation(const Options& options)
      : options_(options), client_(options.server) {
    Clear();
  }

  absl::Status Run();

 private:
  // False: leave.
  bool HandleCommand(const std::string& line);
  void Clear();
  absl::Status Save(const std::string& path) const;
  // Asks, streams the answer and keeps it, as far as it came.
  absl::Status Ask(const std::string& line);
  absl::StatusOr<std::string> Stream(grpc::ClientContext* context,
                                     const v1::GenerateRequest& request);

  const Options options_;
  // Before the channel: its threads must not take Ctrl-C.
  Terminal terminal_;
  Client client_;
  v1::ChatMessages history_;
};

absl::Status Conversation::Run() {
  RETURN_IF_ERROR(client_.WaitForConnection(absl::Seconds(5)));
  const bool person = isatty(STDIN_FILENO);
  if (person) std::cout << "/help for help, Ctrl-D to leave.\n";
  while (true) {
    if (person) std::cout << "> " << std::flush;
    std::string line;
    switch (terminal_.ReadLine(&line)) {
      case Terminal::Event::kLine:
        break;
      case Terminal::Event::kInterrupt:
        std::cout << "\n(Ctrl-D leaves)\n";
        continue;
      default:
        if (person) std::cout << "\n";
        return absl::OkStatus();
    }
    if (line.empty()) continue;
    if (line[0] == '/') {
      if (!HandleCommand(line)) return absl::OkStatus();
      continue;
    }
    const absl::Status status = Ask(line);
    // A person can go on after an error; a script has to see it.
    if (!status.ok() && !person) return status;
    if (!status.ok()) std::cerr << "penstock: " << status.message() << "\n";
  }
}

bool Conversation::HandleCommand(const std::string& line) {
  if (line == "/quit") return false;
  if (line == "/clear") {
    Clear();
  } else if (line.rfind("/save ", 0) == 0) {
    const absl::Status status = Save(line.substr(6));
    if (!status.ok()) std::cerr << status.message() << "\n";
  } else {
    std::cout << kHelp;
  }
  return true;
}

void Conversation::Clear() {
  history_.Clear();
  if (options_.system.empty()) return;
  v1::ChatMessage* message = history_.add_messages();
  message->set_role("system");
  message->set_content(options_.system);
}

absl::Status Conversation::Save(const std::string& path) const {
  nlohmann::json messages = nlohmann::json::array();
  for (const v1::ChatMessage& message : history_.messages()) {
    messages.push_back(
        {{"role", message.role()}, {"content", message.content()}});
  }
  std::ofstream file(path);
  file << nlohmann::json{{"messages", messages}}.dump(
              2, ' ', false, nlohmann::json::error_handler_t::replace)
       << "\n";
  file.close();
  if (file) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be written"));
}

absl::Status Conversation::Ask(const std::string& line) {
  RETURN_IF_ERROR(CheckUtf8("message", line));
  v1::GenerateRequest request;
  request.set_model(options_.model);
  *request.mutable_messages() = history_;
  v1::ChatMessage message;
  message.set_role("user");
  message.set_content(line);
  *request.mutable_messages()->add_messages() = message;
  request.mutable_stop()->set_max_tokens(options_.max_tokens);
  v1::Sampling& sampling = *request.mutable_sampling();
  if (options_.temperature) sampling.set_temperature(*options_.temperature);
  if (options_.seed) sampling.set_seed(*options_.seed);

  // The answer streams on a thread of its own, so that this one can wait for
  // Ctrl-C meanwhile.
  const int done = eventfd(0, EFD_CLOEXEC);
  CHECK(done >= 0);
  grpc::ClientContext context;
  absl::StatusOr<std::string> answer = absl::UnknownError("not asked");
  std::thread streamer([&] {
    answer = Stream(&context, request);
    CHECK(eventfd_write(done, 1) == 0);
  });
  while (terminal_.WaitFor(done) == Terminal::Event::kInterrupt) {
    context.TryCancel();
  }
  streamer.join();
  close(done);
  RETURN_IF_ERROR(answer.status());

  *history_.add_messages() = std::move(message);
  v1::ChatMessage* reply = history_.add_messages();
  reply->set_role("assistant");
  reply->set_content(*std::move(answer));
  return absl::OkStatus();
}

absl::StatusOr<std::string> Conversation::Stream(
    grpc::ClientContext* context, const v1::GenerateRequest& request) {
  const auto reader = client_.stub().Generate(context, request);
  Completion completion;
  absl::Status broken;
  v1::GenerateResponse response;
  while (broken.ok() && reader->Read(&response)) {
    const absl::StatusOr<std::string> text = completion.Add(response);
    broken = text.status();
    if (broken.ok()) {
      std::cout << *text << std::flush;
    } else {
      context->TryCancel();
    }
  }
  std::cout << std::endl;
  const grpc::Status status = reader->Finish();
  RETURN_IF_ERROR(broken);
  // Our own Ctrl-C: what came so far is the answer.
  if (status.error_code() != grpc::StatusCode::CANCELLED) {
    RETURN_IF_ERROR(DescribeFailure(status));
  }
  return completion.text();
}

}  // namespace

void AddChatCommand(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("chat", "A conversation, line by line.");
  auto options = std::make_shared<Options>();
  command->add_option("--server", options->server, "the router's address");
  command->add_option("--model", options->model, "default: what is served");
  command->add_option("--system", options->system, "a system message");
  command->add_option("--max-tokens", options->max_tokens,
                      "tokens of an answer at most");
  command->add_option("--temperature", options->temperature,
                      "0 is greedy; default 1");
  command->add_option("--seed", options->seed, "default: drawn");
  command->callback([options, &action] {
    action = [options] { return Conversation(*options).Run(); };
  });
}

}  // namespace penstock
