// Feeds seeded broken bodies to everything here that reads what HTTP clients
// send.
//   body_mutation --seed 1 --inputs 1000000 --min-hits 100
// A broken promise aborts. Exits 1 when an outcome came up fewer times than
// asked: then the run did not test it.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/env/random.h"
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

  // Prints the outcomes; whether each came up at least `min_hits` times.
  bool Report(uint64_t min_hits) {
    bool enough = true;
    for (const absl::string_view outcome :
         {"json OK", "json INVALID_ARGUMENT", "chat OK",
          "chat INVALID_ARGUMENT", "chat UNIMPLEMENTED", "completion OK",
          "completion INVALID_ARGUMENT", "completion UNIMPLEMENTED",
          "tokenize OK", "tokenize INVALID_ARGUMENT", "detokenize OK",
          "detokenize INVALID_ARGUMENT"}) {
      const uint64_t hits = hits_[std::string(outcome)];
      std::printf("%-30s %10llu%s\n", std::string(outcome).c_str(),
                  static_cast<unsigned long long>(hits),
                  hits < min_hits ? "  too few" : "");
      enough = enough && hits >= min_hits;
    }
    return enough;
  }

 private:
  template <typename Table>
  std::string Pick(const Table& table) {
    return std::string(table[random_.Below(std::size(table))]);
  }

  // A few edits: bytes changed, stretches taken out, copied or put in.
  std::string Mutated(std::string text) {
    for (uint64_t edits = random_.Below(4); edits > 0; --edits) {
      const size_t at = random_.Below(text.size() + 1);
      const size_t length = random_.Below(12);
      switch (random_.Below(6)) {
        case 0:
          text.insert(at, Pick(kWords));
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(at, text.substr(random_.Below(text.size() + 1), length));
          break;
        case 3: {
          const std::string word = Pick(kWords);
          for (uint64_t i = random_.Below(100); i > 0; --i) {
            text.insert(at, word);
          }
          break;
        }
        case 4:
          // A value in place of another: the usual mistake of a client.
          if (const size_t colon = text.find(':', at);
              colon != std::string::npos) {
            const size_t end = text.find_first_of(",}", colon);
            text.replace(colon + 1, end - colon - 1, Pick(kWords));
          }
          break;
        default:
          if (at < text.size()) text[at] = static_cast<char>(random_.Next());
      }
    }
    return text;
  }

  // An error is one that a client can be told: short, and in whole characters.
  void Check(absl::string_view what, const absl::Status& status) {
    ++hits_[absl::StrCat(what, " ", absl::StatusCodeToString(status.code()))];
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
  std::map<std::string, uint64_t> hits_;
};

int Main(int argc, char** argv) {
  std::map<absl::string_view, uint64_t> options = {
      {"--seed", 1}, {"--inputs", 100000}, {"--min-hits", 1}};
  for (int i = 1; i < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end() || i + 1 == argc ||
        !absl::SimpleAtoi(argv[i + 1], &option->second)) {
      std::fprintf(stderr, "usage: %s [--seed S] [--inputs N] [--min-hits H]\n",
                   argv[0]);
      return 2;
    }
  }
  Driver driver(options["--seed"]);
  driver.Run(options["--inputs"]);
  return driver.Report(options["--min-hits"]) ? 0 : 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Main(argc, argv); }
