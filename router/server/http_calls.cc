#include "router/server/http_calls.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/peer/error_reason.h"
#include "router/http/openai/http_error.h"
#include "router/http/openai/logprobs_json.h"
#include "router/http/openai/openai_request.h"
#include "router/server/http_job.h"

namespace penstock {
namespace {

constexpr absl::string_view kModelPath = "/v1/models/";
constexpr size_t kMaxRequestId = 128;

// Goes back in a header and into logs.
bool IsRequestId(absl::string_view id) {
  return !id.empty() && id.size() <= kMaxRequestId &&
         std::all_of(id.begin(), id.end(),
                     [](char c) { return absl::ascii_isgraph(c); });
}

// Browsers send other types without asking first; nobody else does by intent.
bool IsJson(absl::string_view content_type) {
  const absl::string_view type = absl::StripAsciiWhitespace(
      content_type.substr(0, content_type.find(';')));
  return absl::EqualsIgnoreCase(type, "application/json");
}

absl::Status TooMany(absl::string_view what) {
  return MakeError(ErrorReason::kQueueFull, absl::StrCat(what, "; try again"),
                   "", absl::Seconds(1));
}

absl::StatusOr<ApiJson> TokenizeJson(const RequestEncoder& encoder,
                                     const std::string& body) {
  ASSIGN_OR_RETURN(const TokenizeCall call, ParseTokenizeRequest(body));
  RETURN_IF_ERROR(encoder.CheckModel(call.model));
  std::vector<TokenId> ids;
  if (const auto* chat = std::get_if<ChatInput>(&call.input)) {
    ASSIGN_OR_RETURN(ids, encoder.EncodeChat(*chat));
  } else if (const auto& text = std::get<std::string>(call.input);
             !text.empty()) {
    ASSIGN_OR_RETURN(ids, encoder.EncodeText(text, call.add_special_tokens));
  }
  ApiJson texts = nullptr;
  if (call.return_token_texts) {
    texts = ApiJson::array();
    for (const TokenId id : ids) {
      texts.push_back(TokenText(encoder.tokenizer(), id));
    }
  }
  return ApiJson{{"count", ids.size()},
                 {"max_model_len", encoder.info().context_length},
                 {"tokens", ids},
                 {"token_strs", std::move(texts)}};
}

absl::StatusOr<ApiJson> DetokenizeJson(const RequestEncoder& encoder,
                                       const std::string& body) {
  ASSIGN_OR_RETURN(const DetokenizeCall call, ParseDetokenizeRequest(body));
  RETURN_IF_ERROR(encoder.CheckModel(call.model));
  const int most = encoder.info().context_length;
  if (call.ids.size() > static_cast<size_t>(most)) {
    return MakeError(ErrorReason::kInvalidField,
                     absl::StrCat("tokens are ", call.ids.size(),
                                  "; at most the model's context of ", most),
                     "tokens");
  }
  ASSIGN_OR_RETURN(std::string text, encoder.Decode(call.ids, "tokens"));
  return ApiJson{{"prompt", std::move(text)}};
}

HttpResponse JsonResponse(int status, const ApiJson& body,
                          const std::string& request_id) {
  return {status,
          {{"Content-Type", "application/json"}, {"x-request-id", request_id}},
          DumpJson(body)};
}

}  // namespace

HttpCalls::HttpCalls(Ports ports)
    : ports_(std::move(ports)),
      started_(absl::ToUnixSeconds(absl::Now())),
      routes_({{"/v1/chat/completions", {"POST", &HttpCalls::Chat}},
               {"/v1/completions", {"POST", &HttpCalls::Completion}},
               {"/v1/models", {"GET", &HttpCalls::Models}},
               {"/tokenize", {"POST", &HttpCalls::Tokenize}},
               {"/detokenize", {"POST", &HttpCalls::Detokenize}},
               {"/health", {"GET", &HttpCalls::Health, false}},
               {"/metrics", {"GET", &HttpCalls::Metrics, false}}}) {}

std::unique_ptr<HttpCall> HttpCalls::Handle(
    HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
  if (!IsRequestId(request.request_id)) {
    request.request_id = absl::StrFormat("%016x", ports_.random->Next());
  }
  Visit visit{std::move(request), "other", std::move(exchange)};
  std::string path = visit.request.path;
  if (path.size() > 1 && path.back() == '/') path.pop_back();
  Route route{};
  if (const auto found = routes_.find(path); found != routes_.end()) {
    visit.route = found->first;
    route = found->second;
  } else if (absl::StartsWith(path, kModelPath)) {
    visit.route = "/v1/models";
    route = {"GET", &HttpCalls::OneModel};
  } else {
    return NoSuchPath(std::move(visit));
  }
  if (visit.request.method != route.method) {
    return WrongMethod(std::move(visit), route.method);
  }
  if (visit.request.method == "POST" && !IsJson(visit.request.content_type)) {
    Answer(visit, JsonResponse(
                      415,
                      PlainHttpError(415, "send Content-Type: application/json",
                                     "unsupported_media_type")
                          .body,
                      visit.request.request_id));
    return nullptr;
  }
  if (route.needs_key) {
    absl::StatusOr<std::string> tenant =
        ports_.tenants->TenantOf(visit.request);
    if (!tenant.ok()) return Unwelcome(std::move(visit), tenant.status());
    visit.request.tenant = *std::move(tenant);
  }
  return (this->*route.handle)(std::move(visit));
}

std::unique_ptr<HttpCall> HttpCalls::Unwelcome(Visit visit,
                                               const absl::Status& why) {
  if (!absl::IsUnauthenticated(why)) {
    AnswerError(visit, why);
    return nullptr;
  }
  HttpResponse response = JsonResponse(
      401, PlainHttpError(401, why.message(), "invalid_api_key").body,
      visit.request.request_id);
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  Answer(visit, std::move(response));
  return nullptr;
}

void HttpCalls::Answer(const Visit& visit, HttpResponse response) {
  ports_.http_probe->HttpAnswered(visit.route, response.status);
  visit.exchange->Respond(std::move(response));
}

void HttpCalls::AnswerError(const Visit& visit, const absl::Status& status) {
  Answer(visit, ErrorResponse(status, AnswerKind::kCompletion,
                              visit.request.request_id));
}

std::unique_ptr<HttpCall> HttpCalls::NoSuchPath(Visit visit) {
  std::string known;
  for (const auto& [path, route] : routes_) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", path);
  }
  const HttpError error = PlainHttpError(
      404, absl::StrCat("there is no such path here; there are ", known),
      "unknown_path");
  Answer(visit, JsonResponse(404, error.body, visit.request.request_id));
  return nullptr;
}

std::unique_ptr<HttpCall> HttpCalls::WrongMethod(Visit visit,
                                                 const char* allowed) {
  const std::string allow =
      absl::StrCat(allowed, allowed == absl::string_view("GET") ? ", HEAD" : "",
                   ", OPTIONS");
  HttpResponse response;
  if (visit.request.method == "OPTIONS") {
    response.status = 204;
    response.headers = {{"x-request-id", visit.request.request_id}};
  } else {
    response = JsonResponse(
        405,
        PlainHttpError(405, absl::StrCat("this path takes ", allow),
                       "method_not_allowed")
            .body,
        visit.request.request_id);
  }
  response.headers.emplace_back("Allow", allow);
  Answer(visit, std::move(response));
  return nullptr;
}

std::unique_ptr<HttpCall> HttpCalls::Chat(Visit visit) {
  return Generate(AnswerKind::kChat, std::move(visit));
}

std::unique_ptr<HttpCall> HttpCalls::Completion(Visit visit) {
  return Generate(AnswerKind::kCompletion, std::move(visit));
}

std::unique_ptr<HttpCall> HttpCalls::Generate(AnswerKind kind, Visit visit) {
  const uint64_t id = next_call_++;
  HttpRequest& request = visit.request;
  auto call = std::make_unique<HttpGeneration>(
      HttpGeneration::Options{kind, visit.route, request.request_id},
      HttpGeneration::Ports{ports_.core, &ports_.encoder->tokenizer(),
                            ports_.probe, ports_.http_probe,
                            [this, id] { calls_.erase(id); }},
      std::move(visit.exchange));
  calls_[id] = call.get();
  if (static_cast<int>(calls_.size()) > ports_.max_calls) {
    call->Reject(
        TooMany(absl::StrCat(ports_.max_calls, " requests run or wait here")));
    return call;
  }
  const CallInfo info{request.request_id, std::move(request.traceparent)};
  const bool posted = ports_.encoder_loop->TryPost(
      [this, id, kind, info, tenant = std::move(request.tenant),
       body = std::move(request.body)] {
        absl::StatusOr<HttpJob> job =
            EncodeHttpJob(*ports_.encoder, kind, info, tenant, body);
        ports_.loop->Post([this, id, job = std::move(job)]() mutable {
          Encoded(id, std::move(job));
        });
      });
  if (!posted) call->Reject(TooMany("too many prompts wait to be encoded"));
  return call;
}

void HttpCalls::Encoded(uint64_t id, absl::StatusOr<HttpJob> job) {
  const auto call = calls_.find(id);
  if (call == calls_.end()) return;  // its client has left
  if (job.ok()) {
    call->second->Submit(*std::move(job));
  } else {
    call->second->Reject(job.status());
  }
}

ApiJson HttpCalls::ModelJson() const {
  const ModelInfo& info = ports_.encoder->info();
  return {{"id", info.model},
          {"object", "model"},
          {"created", started_},
          {"owned_by", "penstock"},
          {"max_model_len", info.context_length}};
}

std::unique_ptr<HttpCall> HttpCalls::Models(Visit visit) {
  ApiJson models = ApiJson::array();
  models.push_back(ModelJson());
  const ApiJson list = {{"object", "list"}, {"data", std::move(models)}};
  Answer(visit, JsonResponse(200, list, visit.request.request_id));
  return nullptr;
}

std::unique_ptr<HttpCall> HttpCalls::OneModel(Visit visit) {
  absl::string_view name(visit.request.path);
  absl::ConsumePrefix(&name, kModelPath);
  if (absl::Status known = ports_.encoder->CheckModel(name); !known.ok()) {
    AnswerError(visit, known);
  } else {
    Answer(visit, JsonResponse(200, ModelJson(), visit.request.request_id));
  }
  return nullptr;
}

std::unique_ptr<HttpCall> HttpCalls::OnEncoder(
    Visit visit, std::function<absl::StatusOr<ApiJson>(const RequestEncoder&,
                                                       const std::string&)>
                     answer) {
  const bool posted =
      ports_.encoder_loop->TryPost([this, visit, answer = std::move(answer)] {
        const absl::StatusOr<ApiJson> json =
            answer(*ports_.encoder, visit.request.body);
        if (json.ok()) {
          Answer(visit, JsonResponse(200, *json, visit.request.request_id));
        } else {
          AnswerError(visit, json.status());
        }
      });
  if (!posted) AnswerError(visit, TooMany("too much waits to be encoded"));
  return nullptr;
}

std::unique_ptr<HttpCall> HttpCalls::Tokenize(Visit visit) {
  return OnEncoder(std::move(visit), TokenizeJson);
}

std::unique_ptr<HttpCall> HttpCalls::Detokenize(Visit visit) {
  return OnEncoder(std::move(visit), DetokenizeJson);
}

std::unique_ptr<HttpCall> HttpCalls::Health(Visit visit) {
  const bool draining = ports_.core->draining();
  const bool ready = !draining && ports_.core->CanServe();
  const ApiJson state = {{"status", ready      ? "ok"
                                    : draining ? "draining"
                                               : "no workers yet"}};
  Answer(visit,
         JsonResponse(ready ? 200 : 503, state, visit.request.request_id));
  return nullptr;
}

std::unique_ptr<HttpCall> HttpCalls::Metrics(Visit visit) {
  Answer(visit, {200,
                 {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
                 ports_.metrics_page ? ports_.metrics_page() : ""});
  return nullptr;
}

}  // namespace penstock
