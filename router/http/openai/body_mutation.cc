// Feeds seeded broken bodies to everything here that reads what HTTP clients
// send.
//   body_mutation --seed 1 --inputs 1000000 --min-hits 100
// A broken promise aborts. Exits 1 when an outcome came up fewer times than
// asked: then the run did not test it.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/env/random.h"
#include "common/env/testing/edit_text.h"
#include "common/env/testing/mutation_report.h"
#include "common/model/utf8.h"
#include "router/http/openai/http_error.h"
#include "router/http/openai/json_body.h"
#include "router/http/openai/openai_request.h"

namespace penstock {
namespace {

constexpr absl::string_view kBodies[] = {
    R"({"model":"m","messages":[{"role":"user","content":"hi"},)"
    R"({"role":"assistant","content":null,"tool_calls":[{"id":"1"}]},)"
    R"({"role":"user","content":[{"type":"text","text":"\u00e9"}]}],)"
    R"("temperature":0.5,"top_p":1,"n":2,"stop":["a","b"],"seed":-3,)"
    R"("logit_bias":{"5":-100,"7":1.5},"logprobs":true,"top_logprobs":2,)"
    R"("stream":true,"stream_options":{"include_usage":true}})",
    R"({"prompt":["a","b"],"max_tokens":5,"echo":true,"logprobs":3,)"
    R"("best_of":4,"n":2,"suffix":null,"stop":"x","user":"u"})",
    R"({"prompt":[1,2,3],"min_p":0.1,"top_k":-1,"dry_multiplier":0.8,)"
    R"("dry_sequence_breakers":["\n"],"mirostat":2,"xtc_probability":0.5,)"
    R"("allowed_token_ids":[9,3,3],"stop_token_ids":[0],"min_tokens":1})",
    R"({"prompt":[[1,2],[3]],"use_beam_search":true,"length_penalty":1.1,)"
    R"("prompt_logprobs":1,"cache_salt":"s","priority":-1})",
    R"({"tokens":[1,2,3],"model":"m"})",
    R"({"messages":[{"role":"user","content":"x","name":"n"}],)"
    R"("chat_template_kwargs":{"enable_thinking":false},"documents":[{}],)"
    R"("continue_final_message":true,"add_generation_prompt":false,)"
    R"("tools":[],"tool_choice":"none","response_format":{"type":"text"}})"};

constexpr absl::string_view kWords[] = {
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1e999",
    "-0.0",
    "1.5",
    "5.0",
    "99999999999999999999",
    "2147483648",
    "9223372036854775807",
    "\"\"",
    "\"prompt\":",
    "\"messages\":",
    "\"content\":",
    "\"role\":",
    "\"n\":",
    "\"stop\":",
    "\"logit_bias\":{",
    "\"tools\":[{}],",
    "\"tokens\":",
    "\"stream\":true,",
    "\"suffix\":\"x\",",
    "\"response_format\":{\"type\":\"json_object\"},",
    "\"type\":\"image_url\",",
    "[[[[[[[[",
    "{\"a\":{\"a\":",
    "\\ud800",
    "\\u0000",
    "\xC3\xA9",
    "\xFF",
    "\xF0\x9F\x98\x80",
    " ",
    "\n",
    "/**/",
    "NaN",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

class Driver {
 public:
  explicit Driver(uint64_t seed) : random_(seed) {}

  void Run(uint64_t inputs) {
    for (uint64_t i = 0; i < inputs; ++i) {
      const std::string body = Mutated(Pick(kBodies));
      ExerciseJson(body);
      switch (i % 4) {
        case 0:
          ExerciseChat(body);
          break;
        case 1:
          ExerciseCompletion(body);
          break;
        case 2:
          ExerciseTokenize(body);
          break;
        default:
          Check("detokenize", ParseDetokenizeRequest(body).status());
      }
    }
  }

  // The exit status; see MutationReport.
  int Report(uint64_t min_hits) const {
    return report_.Print(
        {"json OK", "json INVALID_ARGUMENT", "chat OK", "chat INVALID_ARGUMENT",
         "chat UNIMPLEMENTED", "completion OK", "completion INVALID_ARGUMENT",
         "completion UNIMPLEMENTED", "tokenize OK", "tokenize INVALID_ARGUMENT",
         "detokenize OK", "detokenize INVALID_ARGUMENT"},
        min_hits);
  }

 private:
  template <typename Table>
  std::string Pick(const Table& table) {
    return std::string(table[random_.Below(std::size(table))]);
  }

  // A value in place of another: the usual mistake of a client.
  void ReplaceValue(std::string& text) {
    const size_t colon = text.find(':', random_.Below(text.size() + 1));
    if (colon == std::string::npos) return;
    const size_t end = text.find_first_of(",}", colon);
    text.replace(colon + 1, end - colon - 1, Pick(kWords));
  }

  // A few edits.
  std::string Mutated(std::string text) {
    for (uint64_t edits = random_.Below(4); edits > 0; --edits) {
      if (random_.Below(6) == 0) {
        ReplaceValue(text);
      } else {
        EditText(kWords, random_, text);
      }
    }
    return text;
  }

  // An error is one that a client can be told: short, and in whole characters.
  void Check(absl::string_view what, const absl::Status& status) {
    report_.Count(what, status);
    if (status.ok()) return;
    const HttpError error = ToHttpError(status, AnswerKind::kChat);
    CHECK(error.status == 400) << status.ToString();
    const std::string text = DumpJson(error.body);
    CHECK(text.size() < 2048 && IsUtf8(text)) << text;
  }

  void ExerciseJson(const std::string& body) {
    const absl::StatusOr<ApiJson> json = ParseJsonBody(body);
    Check("json", json.status());
    const bool accepted = nlohmann::json::accept(body);
    CHECK(!json.ok() || accepted) << "what the library refuses: " << body;
    if (!json.ok()) return;
    // What is read is what is written: the library, without our limits, agrees.
    CHECK(nlohmann::json::parse(DumpJson(*json)) == nlohmann::json::parse(body))
        << "another value: " << body;
  }

  void ExerciseChat(const std::string& body) {
    const absl::StatusOr<OpenAiRequest> request = ParseChatRequest(body);
    Check("chat", request.status());
    if (!request.ok()) return;
    CHECK(request->prompts.size() == 1) << "a chat of several prompts";
    CheckChat(std::get<ChatInput>(request->prompts[0]));
    CheckShared(*request);
  }

  void ExerciseCompletion(const std::string& body) {
    const absl::StatusOr<OpenAiRequest> request = ParseCompletionRequest(body);
    Check("completion", request.status());
    if (!request.ok()) return;
    CHECK(!request->prompts.empty()) << "a completion of nothing";
    CheckShared(*request);
  }

  void ExerciseTokenize(const std::string& body) {
    const absl::StatusOr<TokenizeCall> call = ParseTokenizeRequest(body);
    Check("tokenize", call.status());
    if (!call.ok()) return;
    if (const auto* chat = std::get_if<ChatInput>(&call->input)) {
      CheckChat(*chat);
    }
  }

  void CheckChat(const ChatInput& chat) {
    CHECK(!chat.messages.empty()) << "a chat of nothing";
    for (const ChatMessage& message : chat.messages) {
      CHECK(!message.role.empty() && IsUtf8(message.role)) << "a bad role";
      CHECK(IsUtf8(message.content)) << "bad content";
      CHECK(message.fields.empty() || nlohmann::json::accept(message.fields))
          << message.fields;
    }
  }

  // What the domain takes for granted after the edge.
  void CheckShared(const OpenAiRequest& request) {
    const SamplingParams& sampling = request.client.request.sampling;
    CHECK(std::adjacent_find(sampling.logit_bias.begin(),
                             sampling.logit_bias.end(),
                             [](const auto& a, const auto& b) {
                               return a.first >= b.first;
                             }) == sampling.logit_bias.end())
        << "biases out of order";
    CHECK(std::adjacent_find(
              sampling.allowed_tokens.begin(), sampling.allowed_tokens.end(),
              std::greater_equal<>()) == sampling.allowed_tokens.end())
        << "tokens out of order";
    CHECK(request.client.request.stop.max_tokens >= 0) << "a negative length";
  }

  SeededRandom random_;
  MutationReport report_;
};

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  const auto options = penstock::ParseMutationOptions(argc, argv);
  if (!options) return 2;
  penstock::Driver driver(options->seed);
  driver.Run(options->inputs);
  return driver.Report(options->min_hits);
}
