#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "protos/inference.pb.h"
#include "tools/penstock/chat_settings.h"

namespace penstock {

// A conversation: what was said, how answers are made, and what a line of input
// means. Knows no terminal, file or connection. One owner.
class ChatSession {
 public:
  // `model` may be empty: the one that is served.
  explicit ChatSession(std::string model) : model_(std::move(model)) {}

  // What a line asks of its owner.
  enum class Next {
    kShow,   // print `text`, which may be empty
    kAsk,    // send request(), then call Answer or Drop
    kSave,   // write ToJson() to `path`
    kLeave,  // end
  };
  struct Step {
    Next next = Next::kShow;
    std::string text = {};   // whole lines
    std::string path = {};   // of kSave
    bool overwrite = false;  // of kSave: the file may be there
  };

  // A line of input, without its newline: a command when it begins with a
  // slash, else the user's next message. Two slashes stand for one that begins
  // a message. INVALID_ARGUMENT says what is wrong with a command or that the
  // line is not UTF-8; nothing has changed then.
  absl::StatusOr<Step> Take(absl::string_view line);

  // As `/set NAME VALUE`.
  absl::Status Set(absl::string_view name, absl::string_view value);

  // The conversation with the message that waits for its answer, and the
  // settings.
  v1::GenerateRequest request() const;

  // Ends the question: keeps it with its answer, or forgets it.
  void Answer(std::string text);
  void Drop() { question_.clear(); }

  // The messages so far, as `{"messages": [...]}`.
  std::string ToJson() const;

 private:
  absl::StatusOr<Step> TakeSet(absl::string_view rest);
  absl::StatusOr<Step> TakeSave(absl::string_view rest) const;

  const std::string model_;
  std::string system_;
  std::string question_;       // that waits for its answer
  v1::ChatMessages messages_;  // of users and assistants, in turn
  ChatSettings settings_;
};

}  // namespace penstock
