#include "common/model/text/text_stream.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

std::vector<size_t> Borders(absl::string_view pattern) {
  std::vector<size_t> borders(pattern.size(), 0);
  size_t border = 0;
  for (size_t i = 1; i < pattern.size(); ++i) {
    while (border > 0 && pattern[i] != pattern[border]) {
      border = borders[border - 1];
    }
    if (pattern[i] == pattern[border]) ++border;
    borders[i] = border;
  }
  return borders;
}

}  // namespace

Utf8Assembler::Utf8Assembler(std::string tail) : tail_(std::move(tail)) {
  CHECK(IsTail(tail_)) << "not the tail of an assembler";
}

bool Utf8Assembler::IsTail(absl::string_view bytes) {
  if (bytes.empty()) return true;
  const Utf8Step step = StepUtf8(bytes);
  return step.kind == Utf8Step::Kind::kUnfinished &&
         static_cast<size_t>(step.length) == bytes.size();
}

std::string Utf8Assembler::Push(absl::string_view bytes) {
  tail_.append(bytes.data(), bytes.size());
  const std::string pending = std::exchange(tail_, "");
  std::string text;
  size_t at = 0;
  while (at < pending.size()) {
    const Utf8Step step = StepUtf8(absl::string_view(pending).substr(at));
    if (step.kind == Utf8Step::Kind::kUnfinished) {
      tail_ = pending.substr(at);
      break;
    }
    if (step.kind == Utf8Step::Kind::kCharacter) {
      text.append(pending, at, step.length);
    } else {
      text.append(kReplacement.data(), kReplacement.size());
    }
    at += step.length;
  }
  return text;
}

std::string Utf8Assembler::Flush() {
  if (tail_.empty()) return "";
  tail_.clear();  // a tail is one maximal subpart
  return std::string(kReplacement);
}

StopMatcher::StopMatcher(std::vector<std::string> stops, absl::string_view held)
    : stops_(std::move(stops)), progress_(stops_.size()) {
  for (size_t i = 0; i < stops_.size(); ++i) {
    CHECK(!stops_[i].empty()) << "an empty stop string";
    progress_[i].borders = Borders(stops_[i]);
  }
  // The state is a function of the held text alone: what came before it is
  // part of no stop string.
  const Result replay = Push(held);
  CHECK(!replay.stopped && replay.text.empty()) << "not the state of a matcher";
}

void StopMatcher::Advance(size_t stop, char byte) {
  const std::string& pattern = stops_[stop];
  Progress& progress = progress_[stop];
  size_t matched = progress.matched;
  while (matched > 0 && pattern[matched] != byte) {
    matched = progress.borders[matched - 1];
  }
  progress.matched = matched + (pattern[matched] == byte ? 1 : 0);
}

StopMatcher::Result StopMatcher::Push(absl::string_view text) {
  CHECK(!stopped_) << "text after a stop string";
  if (stops_.empty()) return {std::string(text), false};
  std::string pending = std::move(held_);
  for (const char byte : text) {
    pending.push_back(byte);
    size_t complete = 0;  // the longest stop string that ends here
    for (size_t i = 0; i < stops_.size(); ++i) {
      Advance(i, byte);
      if (progress_[i].matched == stops_[i].size()) {
        complete = std::max(complete, stops_[i].size());
      }
    }
    if (complete > 0) {
      stopped_ = true;
      held_.clear();
      pending.resize(pending.size() - complete);
      return {std::move(pending), true};
    }
  }
  size_t hold = 0;
  for (const Progress& progress : progress_) {
    hold = std::max(hold, progress.matched);
  }
  held_ = pending.substr(pending.size() - hold);
  pending.resize(pending.size() - hold);
  return {std::move(pending), false};
}

std::string StopMatcher::Flush() {
  Restart();
  return std::exchange(held_, "");
}

void StopMatcher::Restart() {
  for (Progress& progress : progress_) progress.matched = 0;
}

}  // namespace penstock
