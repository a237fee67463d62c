#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "tools/penstock/chat_session.h"
#include "tools/penstock/client.h"
#include "tools/penstock/command.h"
#include "tools/penstock/completion.h"
#include "tools/penstock/line_editor.h"
#include "tools/penstock/terminal.h"

namespace penstock {
namespace {

struct Options {
  std::string server = kDefaultServer;
  std::string model;
  std::string system;
  int max_tokens = 512;
  std::optional<float> temperature;
  std::optional<uint64_t> seed;
};

// A session at a terminal, or over lines of a pipe.
class Conversation {
 public:
  explicit Conversation(const Options& options)
      : session_(options.model), client_(options.server) {}

  // As /set, for what the command line says.
  absl::Status Set(absl::string_view name, absl::string_view value) {
    return session_.Set(name, value);
  }
  absl::Status Run();

 private:
  Terminal::Event ReadLine(std::string* line);
  // Does what a line asks; false: leave.
  absl::StatusOr<bool> Handle(const std::string& line);
  absl::Status Save(const ChatSession::Step& step) const;
  // Streams the answer and keeps it, as far as it came.
  absl::Status Ask();
  absl::StatusOr<std::string> Stream(grpc::ClientContext* context,
                                     const v1::GenerateRequest& request);

  ChatSession session_;
  // Before the channel: its threads must not take Ctrl-C.
  Terminal terminal_;
  Client client_;
  std::optional<LineEditor> editor_;  // for a person
};

absl::Status Conversation::Run() {
  RETURN_IF_ERROR(client_.WaitForConnection(absl::Seconds(5)));
  if (isatty(STDIN_FILENO)) {
    editor_.emplace(&terminal_, ChatHistoryFile());
    std::cout << "/help for help, Ctrl-D to leave.\n" << std::flush;
  }
  while (true) {
    std::string line;
    switch (ReadLine(&line)) {
      case Terminal::Event::kLine:
        break;
      case Terminal::Event::kInterrupt:
        std::cout << "\n(Ctrl-D leaves)\n" << std::flush;
        continue;
      default:
        if (editor_.has_value()) std::cout << "\n";
        return absl::OkStatus();
    }
    const absl::StatusOr<bool> goes_on = Handle(line);
    // A person can go on after an error; a script has to see it.
    if (!goes_on.ok() && !editor_.has_value()) return goes_on.status();
    if (!goes_on.ok()) {
      std::cerr << "penstock: " << goes_on.status().message() << "\n";
    } else if (!*goes_on) {
      return absl::OkStatus();
    }
  }
}

Terminal::Event Conversation::ReadLine(std::string* line) {
  return editor_.has_value() ? editor_->ReadLine("> ", line)
                             : terminal_.ReadLine(line);
}

absl::StatusOr<bool> Conversation::Handle(const std::string& line) {
  ASSIGN_OR_RETURN(const ChatSession::Step step, session_.Take(line));
  switch (step.next) {
    case ChatSession::Next::kShow:
      std::cout << step.text << std::flush;
      return true;
    case ChatSession::Next::kAsk:
      RETURN_IF_ERROR(Ask());
      return true;
    case ChatSession::Next::kSave:
      RETURN_IF_ERROR(Save(step));
      return true;
    case ChatSession::Next::kLeave:
      return false;
  }
  return false;
}

absl::Status Conversation::Save(const ChatSession::Step& step) const {
  const int flags =
      O_WRONLY | O_CREAT | O_CLOEXEC | (step.overwrite ? O_TRUNC : O_EXCL);
  const int fd = open(step.path.c_str(), flags, 0600);
  if (fd < 0 && errno == EEXIST) {
    return absl::AlreadyExistsError(absl::StrCat(
        step.path, " is there already; /save -f FILE writes over it"));
  }
  bool written = fd >= 0;
  const std::string json = session_.ToJson();
  for (size_t at = 0; written && at < json.size();) {
    const ssize_t count = write(fd, json.data() + at, json.size() - at);
    written = count > 0 || (count < 0 && errno == EINTR);
    if (count > 0) at += static_cast<size_t>(count);
  }
  const int error = errno;
  if (fd >= 0 && close(fd) != 0) written = false;
  if (written) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(step.path, " cannot be written: ", std::strerror(error)));
}

absl::Status Conversation::Ask() {
  // The answer streams on a thread of its own, so that this one can wait for
  // Ctrl-C meanwhile.
  const int done = eventfd(0, EFD_CLOEXEC);
  CHECK(done >= 0);
  grpc::ClientContext context;
  absl::StatusOr<std::string> answer = absl::UnknownError("not asked");
  const v1::GenerateRequest request = session_.request();
  std::thread streamer([&] {
    answer = Stream(&context, request);
    CHECK(eventfd_write(done, 1) == 0);
  });
  while (terminal_.WaitFor(done) == Terminal::Event::kInterrupt) {
    context.TryCancel();
  }
  streamer.join();
  close(done);
  if (answer.ok()) {
    session_.Answer(*std::move(answer));
    return absl::OkStatus();
  }
  session_.Drop();
  return answer.status();
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

absl::Status Chat(const Options& options) {
  Conversation conversation(options);
  RETURN_IF_ERROR(
      conversation.Set("max_tokens", absl::StrCat(options.max_tokens)));
  if (!options.system.empty()) {
    RETURN_IF_ERROR(conversation.Set("system", options.system));
  }
  if (options.temperature) {
    RETURN_IF_ERROR(
        conversation.Set("temperature", absl::StrCat(*options.temperature)));
  }
  if (options.seed) {
    RETURN_IF_ERROR(conversation.Set("seed", absl::StrCat(*options.seed)));
  }
  return conversation.Run();
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
  command->callback(
      [options, &action] { action = [options] { return Chat(*options); }; });
}

}  // namespace penstock
