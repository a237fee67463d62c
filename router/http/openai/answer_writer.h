#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/id.h"
#include "common/model/text/tokenizer.h"
#include "common/model/token_frame.h"
#include "router/http/openai/json_body.h"
#include "router/http/openai/logprobs_json.h"
#include "router/http/openai/openai_request.h"

namespace penstock {

// Writes the answer to one call out of the frames of its prompts: one JSON
// document, or server-sent events as they come. Choices are numbered prompt by
// prompt, sample by sample. In a stream a choice's first event carries the
// role, its last one the only finish_reason that is not null; usage, when asked
// for, comes in an event of its own after all choices. Single-threaded.
class AnswerWriter {
 public:
  struct Prompt {
    std::vector<TokenId> ids;
    std::string text;  // what echo gives back
  };
  struct Options {
    std::string id;  // of the answer, in all its events
    std::string model;
    std::string fingerprint;
    int64_t created = 0;  // seconds since 1970
    AnswerOptions answer;
    int samples = 1;                // of each prompt
    std::vector<TokenId> stop_ids;  // the request's own
    std::vector<Prompt> prompts;
  };
  // The tokenizer outlives the writer.
  AnswerWriter(Options options, const Tokenizer* tokenizer);

  // Takes a frame of a prompt's answer and returns the events to send now; not
  // when the answer is one document, then nothing. INTERNAL: no such choice.
  absl::StatusOr<std::string> Add(int prompt, TokenFrame frame);

  // Once, when every prompt's answer has ended: the document, or the stream's
  // last events.
  std::string Finish();

  bool streams() const { return options_.answer.stream; }
  const std::string& id() const { return options_.id; }

 private:
  struct Choice {
    int index = 0;
    int prompt = 0;
    bool begun = false;     // its first event is out
    std::string text = {};  // of the document
    std::vector<FrameToken> tokens =
        {};  // whose logprobs or ids wait to be written
    CompletionLogprobs completion;
    FinishReason finish = FinishReason::kNone;
  };

  bool chat() const { return options_.answer.kind == AnswerKind::kChat; }
  bool IsStop(TokenId id) const;
  void Keep(Choice& choice, const TokenFrame& frame);
  std::string Events(Choice& choice, std::string text);
  void BeginEcho(Choice& choice, std::string* text);
  // Logprobs and ids of what waits.
  void WriteTokens(Choice& choice, ApiJson& json);
  // The event of a token of which nothing but the text is to be told.
  std::string TextEvent(const Choice& choice, const std::string& text) const;
  std::string Event(const ApiJson& choice) const;
  std::string EventOf(absl::string_view choice) const;
  ApiJson Document();
  ApiJson DocumentChoice(Choice& choice);
  ApiJson UsageJson() const;

  const Options options_;
  const Tokenizer* const tokenizer_;
  std::string event_head_;  // an event up to its choices
  std::vector<Choice> choices_;
  std::vector<Usage> usages_;                                // of each prompt
  std::vector<std::vector<TokenLogprobs>> prompt_logprobs_;  // of each prompt
};

// The event that says why a stream ends early.
std::string ErrorEvent(const ApiJson& error);

}  // namespace penstock
