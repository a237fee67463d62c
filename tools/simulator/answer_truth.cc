#include "tools/simulator/answer_truth.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

TrueHistory HistoryOf(const std::vector<TokenId>& prompt) {
  TrueHistory history;
  for (TokenId token : prompt) history.Append(token);
  return history;
}

std::string TextOf(TokenId token) { return absl::StrCat("<", token, ">"); }

// Cuts `answer` at the earliest stop string, if its text has one now.
bool CutAtStop(const GenerateRequest& request, TrueAnswer& answer) {
  size_t first = std::string::npos;
  for (const std::string& stop : request.stop.stop_strings) {
    first = std::min(first, answer.text.find(stop));
  }
  if (first == std::string::npos) return false;
  answer.text.resize(first);
  answer.finish = FinishReason::kStop;
  return true;
}

bool Ends(const GenerateRequest& request, TokenId token) {
  const std::vector<TokenId>& stops = request.stop.stop_ids;
  return token == SimModel::kStopToken ||
         std::find(stops.begin(), stops.end(), token) != stops.end();
}

struct Beam {
  double sum = 0;
  TrueHistory history;
  std::vector<TokenId> tokens;
};

struct Continuation {
  double sum = 0;
  int parent = 0;
  TokenId token = 0;
};

// Of all beams, best first; on equal sums the earlier beam, the lower token.
std::vector<Continuation> Continue(const GenerateRequest& request,
                                   const std::vector<Beam>& beams, bool may_end,
                                   size_t count) {
  std::vector<Continuation> all;
  for (size_t i = 0; i < beams.size(); ++i) {
    const std::vector<float> next =
        SimModel::Logprobs(beams[i].history.state());
    for (TokenId token = 0; token < SimModel::kVocabulary; ++token) {
      if (!may_end && Ends(request, token)) continue;
      all.push_back({beams[i].sum + next[token], static_cast<int>(i), token});
    }
  }
  count = std::min(count, all.size());
  std::partial_sort(all.begin(), all.begin() + count, all.end(),
                    [](const Continuation& a, const Continuation& b) {
                      if (a.sum != b.sum) return a.sum > b.sum;
                      if (a.parent != b.parent) return a.parent < b.parent;
                      return a.token < b.token;
                    });
  all.resize(count);
  return all;
}

}  // namespace

void TrueHistory::Append(TokenId token) {
  state_ = SimModel::Fold(state_, SimModel::Word(token, length_++));
}

TrueAnswer TrueSample(const GenerateRequest& request, int sample,
                      bool with_logprob) {
  TrueAnswer answer;
  TrueHistory history = HistoryOf(request.prompt);
  const std::vector<TokenId> drawn =
      SimModel::Answer(request, request.stop.max_tokens, sample);
  for (TokenId token : drawn) {
    if (with_logprob) {
      answer.mean_logprob +=
          SimModel::Compare(history.state(), token, 0).logprob;
    }
    history.Append(token);
    answer.tokens.push_back(token);
    answer.text += TextOf(token);
    if (CutAtStop(request, answer)) break;
  }
  if (answer.finish == FinishReason::kNone) {
    answer.finish = FinishReason::kLength;
  }
  answer.mean_logprob /= static_cast<double>(answer.tokens.size());
  return answer;
}

std::vector<TrueAnswer> TrueBeams(const GenerateRequest& request) {
  const auto width = static_cast<size_t>(request.beam.width);
  std::vector<Beam> live = {{0, HistoryOf(request.prompt), {}}};
  std::vector<TrueAnswer> kept;
  auto score = [&](double sum, int length) {
    return sum / std::pow(length, request.beam.length_penalty);
  };
  auto keep = [&](double sum, std::vector<TokenId> tokens) {
    TrueAnswer answer;
    answer.mean_logprob = score(sum, static_cast<int>(tokens.size()));
    answer.tokens = std::move(tokens);
    kept.push_back(std::move(answer));
    std::stable_sort(kept.begin(), kept.end(),
                     [](const TrueAnswer& a, const TrueAnswer& b) {
                       return a.mean_logprob > b.mean_logprob;
                     });
    if (kept.size() > width) kept.pop_back();
  };
  bool settled = false;
  for (int at = 1; at <= request.stop.max_tokens && !settled; ++at) {
    const size_t ends = request.stop.stop_ids.size() + 1;
    const std::vector<Continuation> best =
        Continue(request, live, at > request.stop.min_tokens,
                 width + ends * live.size());
    std::vector<Beam> next;
    for (size_t rank = 0; rank < best.size() && next.size() < width; ++rank) {
      const Beam& parent = live[best[rank].parent];
      const TokenId token = best[rank].token;
      std::vector<TokenId> tokens = parent.tokens;
      tokens.push_back(token);
      if (!Ends(request, token)) {
        TrueHistory history = parent.history;
        history.Append(token);
        next.push_back({best[rank].sum, history, std::move(tokens)});
      } else if (rank < width) {
        keep(best[rank].sum, std::move(tokens));
      }
    }
    live = std::move(next);
    settled = kept.size() == width &&
              kept.back().mean_logprob >= score(live[0].sum, at);
  }
  if (!settled) {
    for (Beam& beam : live) keep(beam.sum, std::move(beam.tokens));
  }
  kept.resize(std::min<size_t>(kept.size(), request.n));
  return kept;
}

std::string AnswerTruth::CheckNew() {
  if (std::string wrong = CheckPrompt(); !wrong.empty()) return wrong;
  // Which answers win is known when all have ended.
  if (client_->request.deferred()) return "";
  for (const auto& [sample, tokens] : client_->samples) {
    if (std::string wrong = CheckSample(sample, tokens); !wrong.empty()) {
      return absl::StrCat("sample ", sample, ": ", wrong);
    }
  }
  return "";
}

std::string AnswerTruth::CheckPrompt() {
  const GenerateRequest& request = client_->request;
  const std::vector<TokenLogprobs>& shown = client_->prompt;
  if (shown.empty()) return "";
  if (request.prompt_logprobs < 0 || shown.size() >= request.prompt.size()) {
    return "more log-probabilities of the prompt than were asked for";
  }
  for (; prompt_checked_ < shown.size(); ++prompt_checked_) {
    const size_t i = prompt_checked_;
    prompt_.Append(request.prompt[i]);
    const TokenLogprobs truth = SimModel::Compare(
        prompt_.state(), request.prompt[i + 1], request.prompt_logprobs);
    if (shown[i].logprob != truth.logprob || shown[i].top != truth.top) {
      return absl::StrCat("wrong log-probability of prompt token ", i + 1);
    }
  }
  return "";
}

std::string AnswerTruth::CheckSample(int sample,
                                     const std::vector<TokenId>& tokens) {
  const GenerateRequest& request = client_->request;
  Sample& truth = samples_[sample];
  if (truth.checked == 0) {
    truth.history = HistoryOf(request.prompt);
    truth.draws = SimModel::Answer(request, request.stop.max_tokens, sample);
  }
  const int logprobs = request.sampling.logprobs;
  for (; truth.checked < tokens.size(); ++truth.checked) {
    const size_t i = truth.checked;
    if (truth.answer.finish != FinishReason::kNone) {
      return absl::StrCat("token ", i, " after its end");
    }
    if (i >= truth.draws.size()) return "more tokens than were asked for";
    const TokenId token = truth.draws[i];
    if (tokens[i] != token) {
      return absl::StrCat("token ", i, " is ", tokens[i], " instead of ",
                          token);
    }
    if (logprobs >= 0) {
      const TokenLogprobs expected =
          SimModel::Compare(truth.history.state(), token, logprobs);
      const TokenLogprobs& got = client_->logprobs.at(sample)[i];
      if (got.logprob != expected.logprob || got.top != expected.top) {
        return absl::StrCat("wrong log-probability of token ", i);
      }
    }
    truth.history.Append(token);
    truth.answer.tokens.push_back(token);
    truth.answer.text += TextOf(token);
    if (!CutAtStop(request, truth.answer) &&
        static_cast<int>(i) + 1 == request.stop.max_tokens) {
      truth.answer.finish = FinishReason::kLength;
    }
  }
  auto text = client_->texts.find(sample);
  if (text != client_->texts.end() &&
      !absl::StartsWith(truth.answer.text, text->second)) {
    return absl::StrCat("the text \"", text->second, "\" instead of \"",
                        truth.answer.text, "\"");
  }
  auto finished = client_->finished.find(sample);
  if (finished == client_->finished.end()) return "";
  if (finished->second != truth.answer.finish) {
    return absl::StrCat("ended after ", tokens.size(), " tokens for reason ",
                        static_cast<int>(finished->second), " instead of ",
                        static_cast<int>(truth.answer.finish));
  }
  if (text->second != truth.answer.text) {
    return absl::StrCat("ended with the text \"", text->second,
                        "\" instead of \"", truth.answer.text, "\"");
  }
  return "";
}

std::string AnswerTruth::CheckEnd() const {
  const GenerateRequest& request = client_->request;
  if (!client_->ended->ok()) return "";
  if (request.stop.max_tokens > 0 &&
      static_cast<int>(client_->finished.size()) != request.n) {
    return absl::StrCat("ended well, but only ", client_->finished.size(),
                        " of ", request.n, " answers did");
  }
  if (request.prompt_logprobs >= 0 &&
      client_->prompt.size() + 1 != request.prompt.size()) {
    return "ended well, but without the prompt's log-probabilities";
  }
  if (request.deferred()) {
    if (std::string wrong = CheckDeferred(); !wrong.empty()) return wrong;
  }
  return CheckUsage();
}

std::string AnswerTruth::CheckDeferred() const {
  const GenerateRequest& request = client_->request;
  std::vector<TrueAnswer> best;
  if (request.beam.width > 0) {
    best = TrueBeams(request);
  } else {
    for (int i = 0; i < request.answers(); ++i) {
      best.push_back(TrueSample(request, i, true));
    }
    std::stable_sort(best.begin(), best.end(),
                     [](const TrueAnswer& a, const TrueAnswer& b) {
                       return a.mean_logprob > b.mean_logprob;
                     });
  }
  for (int i = 0; i < request.n; ++i) {
    if (client_->samples.at(i) != best[i].tokens) {
      return absl::StrCat("answer ", i, " is not the one of rank ", i);
    }
    if (request.beam.width > 0) continue;
    if (client_->texts.at(i) != best[i].text) {
      return absl::StrCat("answer ", i, " has another text");
    }
  }
  return "";
}

std::string AnswerTruth::CheckUsage() const {
  if (!client_->last.has_value()) return "";
  const Usage& usage = client_->last->usage;
  size_t tokens = 0;
  for (const auto& [sample, shown] : client_->samples) tokens += shown.size();
  if (usage.prompt_tokens != static_cast<int>(client_->request.prompt.size())) {
    return absl::StrCat("usage counts ", usage.prompt_tokens, " prompt tokens");
  }
  // Those that lost were made too.
  if (usage.completion_tokens < static_cast<int>(tokens) ||
      (!client_->request.deferred() &&
       usage.completion_tokens != static_cast<int>(tokens))) {
    return absl::StrCat("usage counts ", usage.completion_tokens, " of ",
                        tokens, " tokens");
  }
  return "";
}

}  // namespace penstock
