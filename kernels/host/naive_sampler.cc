#include "kernels/host/naive_sampler.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace penstock {
namespace {

struct Entry {
  TokenId id;
  double logit;
};
using Entries = std::vector<Entry>;

void Sort(Entries& entries) {
  std::stable_sort(
      entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
      });
}

std::vector<double> Softmax(const Entries& entries) {
  double total = 0;
  for (const Entry& e : entries) total += std::exp(e.logit - entries[0].logit);
  std::vector<double> p;
  for (const Entry& e : entries) {
    p.push_back(std::exp(e.logit - entries[0].logit) / total);
  }
  return p;
}

void Choose(const SampleRow& row, Entries& entries) {
  const std::vector<TokenId>& allowed = row.params.allowed_tokens;
  const std::set<TokenId> may(allowed.begin(), allowed.end());
  const std::set<TokenId> banned(row.banned.begin(), row.banned.end());
  Entries left;
  for (Entry e : entries) {
    for (const auto& [token, bias] : row.params.logit_bias) {
      if (token == e.id) e.logit += bias;
    }
    if (banned.count(e.id) == 0 && (may.empty() || may.count(e.id) > 0)) {
      left.push_back(e);
    }
  }
  entries = left;
}

void Penalize(const PenaltyParams& params, const SampleHistory& history,
              Entries& entries) {
  const int size = static_cast<int>(history.tokens.size());
  const int begin = params.window < 0 ? 0 : std::max(0, size - params.window);
  for (Entry& e : entries) {
    int anywhere = 0, in_answer = 0;
    for (int i = begin; i < size; ++i) {
      anywhere += history.tokens[i] == e.id;
      in_answer += history.tokens[i] == e.id && i >= history.prompt_tokens;
    }
    if (anywhere > 0) {
      e.logit = e.logit > 0 ? e.logit / params.repetition
                            : e.logit * params.repetition;
    }
    e.logit -= in_answer * double{params.frequency};
    if (in_answer > 0) e.logit -= params.presence;
  }
}

void PenalizeRuns(const DryParams& params, const SampleHistory& history,
                  Entries& entries) {
  std::vector<TokenId> text = history.tokens;
  if (params.window >= 0 && params.window < static_cast<int>(text.size())) {
    text.erase(text.begin(), text.end() - params.window);
  }
  const std::set<TokenId> breakers(history.dry_breakers.begin(),
                                   history.dry_breakers.end());
  const int size = static_cast<int>(text.size());
  std::map<TokenId, int> longest;
  for (int at = 0; at < size; ++at) {
    // How far the text before `at` is the text before the end.
    int run = 0;
    while (run < at && text[at - 1 - run] == text[size - 1 - run] &&
           breakers.count(text[size - 1 - run]) == 0) {
      ++run;
    }
    longest[text[at]] = std::max(longest[text[at]], run);
  }
  for (Entry& e : entries) {
    const int run = longest.count(e.id) > 0 ? longest[e.id] : 0;
    if (run < params.allowed_length || breakers.count(e.id) > 0) continue;
    e.logit -= params.multiplier *
               std::pow(double{params.base}, run - params.allowed_length);
  }
}

void CutTopP(double share, Entries& entries) {
  const std::vector<double> p = Softmax(entries);
  double sum = 0;
  size_t n = 0;
  while (n < p.size() && sum < share) sum += p[n++];
  entries.resize(std::max<size_t>(n, 1));
}

void CutMinP(double least, Entries& entries) {
  const std::vector<double> p = Softmax(entries);
  size_t n = 1;
  while (n < p.size() && p[n] >= least * p[0]) ++n;
  entries.resize(n);
}

void CutTopNSigma(double n, Entries& entries) {
  double mean = 0, variance = 0;
  for (const Entry& e : entries) mean += e.logit / entries.size();
  for (const Entry& e : entries) {
    variance += (e.logit - mean) * (e.logit - mean) / entries.size();
  }
  const double bound = entries[0].logit - n * std::sqrt(variance);
  while (entries.size() > 1 && entries.back().logit < bound) {
    entries.pop_back();
  }
}

void CutTypical(double share, Entries& entries) {
  const std::vector<double> p = Softmax(entries);
  double entropy = 0;
  for (double each : p) entropy -= each * std::log(each);
  std::vector<size_t> order(p.size());
  for (size_t n = 0; n < order.size(); ++n) order[n] = n;
  auto distance = [&](size_t n) { return std::abs(-std::log(p[n]) - entropy); };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return distance(a) < distance(b);
  });
  Entries kept;
  double sum = 0;
  for (size_t n : order) {
    if (sum >= share && !kept.empty()) break;
    sum += p[n];
    kept.push_back(entries[n]);
  }
  entries = kept;
  Sort(entries);
}

void CutXtc(double threshold, Entries& entries) {
  const std::vector<double> p = Softmax(entries);
  size_t choices = 0;
  while (choices < p.size() && p[choices] >= threshold) ++choices;
  if (choices > 1) {
    entries.erase(entries.begin(), entries.begin() + (choices - 1));
  }
}

void CutSurprising(double mu, Entries& entries) {
  const std::vector<double> p = Softmax(entries);
  size_t n = 0;
  while (n < p.size() && -std::log2(p[n]) <= mu) ++n;
  entries.resize(std::max<size_t>(n, 1));
}

void Apply(SamplerStage stage, const SampleRow& row, bool excludes,
           Entries& entries) {
  const SamplingParams& params = row.params;
  const bool cuts = !params.mirostat.on;
  switch (stage) {
    case SamplerStage::kPenalties:
      if (row.history) Penalize(params.penalties, *row.history, entries);
      break;
    case SamplerStage::kDry:
      if (params.dry.multiplier > 0) {
        PenalizeRuns(params.dry, *row.history, entries);
      }
      break;
    case SamplerStage::kTopNSigma:
      if (cuts && params.top_n_sigma > 0) {
        CutTopNSigma(params.top_n_sigma, entries);
      }
      break;
    case SamplerStage::kTopK:
      if (cuts && params.top_k > 0) {
        entries.resize(std::min<size_t>(entries.size(), params.top_k));
      }
      break;
    case SamplerStage::kTypicalP:
      if (cuts && params.typical_p < 1) CutTypical(params.typical_p, entries);
      break;
    case SamplerStage::kTopP:
      if (cuts && params.top_p < 1) CutTopP(params.top_p, entries);
      break;
    case SamplerStage::kMinP:
      if (cuts && params.min_p > 0) CutMinP(params.min_p, entries);
      break;
    case SamplerStage::kXtc:
      if (cuts && excludes) CutXtc(params.xtc.threshold, entries);
      break;
    case SamplerStage::kTemperature:
      for (Entry& e : entries) e.logit /= double{params.temperature};
      break;
  }
  Sort(entries);
}

}  // namespace

NaiveDraw NaivelyDraw(absl::Span<const float> logits, const SampleRow& row,
                      bool excludes) {
  Entries entries;
  for (size_t id = 0; id < logits.size(); ++id) {
    entries.push_back({static_cast<TokenId>(id), logits[id]});
  }
  Choose(row, entries);
  Sort(entries);
  std::vector<SamplerStage> stages = row.params.stages;
  for (int i = 0; row.params.stages.empty() && i < kSamplerStageCount; ++i) {
    stages.push_back(static_cast<SamplerStage>(i));
  }
  for (SamplerStage stage : stages) {
    const bool edits =
        stage == SamplerStage::kPenalties || stage == SamplerStage::kDry;
    if (edits || row.params.temperature > 0) {
      Apply(stage, row, excludes, entries);
    }
  }
  if (row.params.temperature == 0) {
    entries.resize(1);
  } else if (row.params.mirostat.on) {
    CutSurprising(row.history->mirostat_mu, entries);
  }
  NaiveDraw draw;
  draw.shares.assign(logits.size(), 0.0);
  const std::vector<double> p = Softmax(entries);
  for (size_t n = 0; n < entries.size(); ++n) {
    draw.order.push_back(entries[n].id);
    draw.shares[entries[n].id] = p[n];
  }
  return draw;
}

TokenId TokenAt(const NaiveDraw& draw, double uniform) {
  double sum = 0;
  for (TokenId id : draw.order) {
    sum += draw.shares[id];
    if (sum > uniform) return id;
  }
  return draw.order.back();
}

}  // namespace penstock
