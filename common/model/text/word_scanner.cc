#include "common/model/text/word_scanner.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_replace.h"
#include "common/model/text/unicode_class.h"
#include "common/model/text/word_patterns.h"

namespace penstock {
namespace {

using Pieces = std::vector<TextRange>;

// A text up to the end of a range, with the questions that patterns ask. The
// places are offsets of boundaries; `end` has no character.
class Scan {
 public:
  Scan(absl::string_view text, size_t end) : text_(text.substr(0, end)) {}

  size_t end() const { return text_.size(); }
  bool AtEnd(size_t at) const { return at >= text_.size(); }
  ClassedCharacter At(size_t at) const { return ClassAt(text_, at); }
  char Byte(size_t at) const { return text_[at]; }
  bool Is(size_t at, int classes) const {
    return !AtEnd(at) && (At(at).classes & classes) != 0;
  }

  // The end of the run of `classes` from `at`.
  size_t Run(size_t at, int classes) const {
    while (at < text_.size()) {
      const ClassedCharacter c = At(at);
      if ((c.classes & classes) == 0) break;
      at += c.length;
    }
    return at;
  }
  size_t RunWithout(size_t at, int classes) const {
    while (at < text_.size()) {
      const ClassedCharacter c = At(at);
      if ((c.classes & classes) != 0) break;
      at += c.length;
    }
    return at;
  }
  // At most `most` numerals.
  size_t Numerals(size_t at, int most) const {
    while (most-- > 0 && Is(at, kNumber)) at += At(at).length;
    return at;
  }
  size_t LineBreaks(size_t at) const { return Run(at, kLineBreak); }
  size_t LineBreaksOrSlashes(size_t at) const {
    while (!AtEnd(at) && (Byte(at) == '/' || Is(at, kLineBreak))) ++at;
    return at;
  }

  // '(?:[sdmt]|ll|ve|re): the end, or `at`.
  size_t Contraction(size_t at) const {
    if (AtEnd(at) || Byte(at) != '\'') return at;
    const absl::string_view rest = text_.substr(at + 1, 2);
    if (rest.empty()) return at;
    if (rest == "ll" || rest == "ve" || rest == "re") return at + 3;
    const char c = rest[0];
    return c == 's' || c == 'd' || c == 'm' || c == 't' ? at + 2 : at;
  }
  // The same in either case; U+017F is a small S, too.
  size_t AnyCaseContraction(size_t at) const {
    if (AtEnd(at) || Byte(at) != '\'') return at;
    const absl::string_view rest = text_.substr(at + 1, 2);
    if (rest == "\u017F") return at + 3;
    if (rest.empty()) return at;
    const char first = Lower(rest[0]);
    if (rest.size() == 2) {
      const char second = Lower(rest[1]);
      if ((first == 'l' && second == 'l') || (first == 'v' && second == 'e') ||
          (first == 'r' && second == 'e')) {
        return at + 3;
      }
    }
    return first == 's' || first == 'd' || first == 'm' || first == 't' ? at + 2
                                                                        : at;
  }

  // \s+(?!\S)|\s+, which leaves the last of several spaces to the word after
  // it. Precondition: white space at `at`.
  size_t Spaces(size_t at) const {
    size_t last = at;
    size_t end = at;
    while (Is(end, kWhiteSpace)) {
      last = end;
      end += At(end).length;
    }
    return AtEnd(end) || last == at ? end : last;
  }
  // \s*[\r\n]+|\s+(?!\S)|\s+: up to the last line break of the run, if any.
  size_t SpacesByLine(size_t at) const {
    size_t last = at;
    size_t end = at;
    size_t after_break = at;
    while (!AtEnd(end)) {
      const ClassedCharacter c = At(end);
      if ((c.classes & kWhiteSpace) == 0) break;
      last = end;
      end += c.length;
      if (c.classes & kLineBreak) after_break = end;
    }
    if (after_break > at) return after_break;
    return AtEnd(end) || last == at ? end : last;
  }

 private:
  static char Lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  }

  absl::string_view text_;
};

// A pattern of which every character is part of some match: `next` gives the
// end of the match at a place.
template <typename Next>
void ScanAll(absl::string_view text, TextRange range, Pieces& pieces,
             const Next& next) {
  const Scan scan(text, range.end);
  size_t at = range.begin;
  while (at < range.end) {
    const size_t end = next(scan, at);
    pieces.push_back({at, end});
    at = end;
  }
}

// A pattern that may match nothing: then `next` gives the place itself.
template <typename Next>
void ScanSome(absl::string_view text, TextRange range, Pieces& pieces,
              const Next& next) {
  const Scan scan(text, range.end);
  size_t begin = range.begin;  // of what no match has taken
  size_t at = begin;
  while (at < range.end) {
    const size_t end = next(scan, at);
    if (end == at) {
      at += scan.At(at).length;
      continue;
    }
    if (begin < at) pieces.push_back({begin, at});
    pieces.push_back({at, end});
    begin = at = end;
  }
  if (begin < range.end) pieces.push_back({begin, range.end});
}

constexpr int kWord = kLetter | kNumber | kWhiteSpace;

size_t NextGpt2(const Scan& scan, size_t at) {
  const size_t contraction = scan.Contraction(at);
  if (contraction > at) return contraction;
  const size_t start =
      scan.Byte(at) == ' ' && !scan.AtEnd(at + 1) ? at + 1 : at;
  const uint16_t classes = scan.At(start).classes;
  if (classes & kLetter) return scan.Run(start, kLetter);
  if (classes & kNumber) return scan.Run(start, kNumber);
  if ((classes & kWhiteSpace) == 0) return scan.RunWithout(start, kWord);
  return scan.Spaces(at);
}

void ScanGpt2(absl::string_view text, TextRange range, Pieces& pieces) {
  ScanAll(text, range, pieces, NextGpt2);
}

// The family of cl100k: a letter run takes one other character along; `marks`:
// whether combining marks count as letters.
template <int kNumerals, bool kMarks>
size_t NextCl100k(const Scan& scan, size_t at) {
  constexpr int kLetters = kMarks ? kLetter | kMark : kLetter;
  const size_t contraction = scan.AnyCaseContraction(at);
  if (contraction > at) return contraction;
  const ClassedCharacter first = scan.At(at);
  if (first.classes & kLetters) return scan.Run(at, kLetters);
  if (first.classes & kNumber) return scan.Numerals(at, kNumerals);
  const size_t second = at + first.length;
  if ((first.classes & kLineBreak) == 0 && scan.Is(second, kLetters)) {
    return scan.Run(second, kLetters);
  }
  constexpr int kNotSign = kWord | (kMarks ? kMark : 0);
  if ((first.classes & kNotSign) == 0) {
    return scan.LineBreaks(scan.RunWithout(at, kNotSign));
  }
  if (scan.Byte(at) == ' ' && !scan.AtEnd(second) &&
      !scan.Is(second, kNotSign)) {
    return scan.LineBreaks(scan.RunWithout(second, kNotSign));
  }
  return scan.SpacesByLine(at);
}

template <int kNumerals, bool kMarks>
void ScanCl100k(absl::string_view text, TextRange range, Pieces& pieces) {
  ScanAll(text, range, pieces, NextCl100k<kNumerals, kMarks>);
}

// [Lu Lt Lm Lo M]*[Ll Lm Lo M]+ from `at`; the end, or `at`. Where the first
// part has taken everything it gives back up to its last character that also
// fits the second.
size_t Capitalised(const Scan& scan, size_t at) {
  size_t end = at;
  size_t after_last = at;  // after the last that fits both
  while (!scan.AtEnd(end)) {
    const ClassedCharacter c = scan.At(end);
    if ((c.classes & (kUpperOrTitle | kCaseless | kMark)) == 0) break;
    end += c.length;
    if (c.classes & (kCaseless | kMark)) after_last = end;
  }
  if (scan.Is(end, kLower)) return scan.Run(end, kLower | kCaseless | kMark);
  return after_last;
}

// [Lu Lt Lm Lo M]+[Ll Lm Lo M]* from `at`; the end, or `at`.
size_t Shouted(const Scan& scan, size_t at) {
  const size_t end = scan.Run(at, kUpperOrTitle | kCaseless | kMark);
  return end == at ? at : scan.Run(end, kLower | kCaseless | kMark);
}

// The family of o200k, which cuts words where small letters give way to
// capitals.
template <int kNumerals, bool kContractions>
size_t NextO200k(const Scan& scan, size_t at) {
  const ClassedCharacter first = scan.At(at);
  const bool takes_one =
      (first.classes & (kLineBreak | kLetter | kNumber)) == 0;
  const size_t second = at + first.length;
  for (const auto word : {Capitalised, Shouted}) {
    size_t end = second;
    if (takes_one) end = word(scan, second);
    if (end == second) {
      end = word(scan, at);
      if (end == at) continue;
    }
    return kContractions ? scan.AnyCaseContraction(end) : end;
  }
  if (first.classes & kNumber) return scan.Numerals(at, kNumerals);
  if ((first.classes & kWord) == 0) {
    return scan.LineBreaksOrSlashes(scan.RunWithout(at, kWord));
  }
  if (scan.Byte(at) == ' ' && !scan.AtEnd(second) && !scan.Is(second, kWord)) {
    return scan.LineBreaksOrSlashes(scan.RunWithout(second, kWord));
  }
  return scan.SpacesByLine(at);
}

template <int kNumerals, bool kContractions>
void ScanO200k(absl::string_view text, TextRange range, Pieces& pieces) {
  ScanAll(text, range, pieces, NextO200k<kNumerals, kContractions>);
}

size_t NextDeepSeek(const Scan& scan, size_t at) {
  constexpr int kSigns = kPunctuation | kSymbol;
  constexpr int kLetters = kLetter | kMark;
  const ClassedCharacter first = scan.At(at);
  const size_t second = at + first.length;
  if ((first.classes & kAsciiMark) && scan.Is(second, kAsciiLetter)) {
    return scan.Run(second, kAsciiLetter);
  }
  if ((first.classes & (kLineBreak | kLetter | kSigns)) == 0 &&
      scan.Is(second, kLetters)) {
    return scan.Run(second, kLetters);
  }
  if (first.classes & kLetters) return scan.Run(at, kLetters);
  if (first.classes & kSigns) return scan.LineBreaks(scan.Run(at, kSigns));
  if (scan.Byte(at) == ' ' && scan.Is(second, kSigns)) {
    return scan.LineBreaks(scan.Run(second, kSigns));
  }
  return first.classes & kWhiteSpace ? scan.SpacesByLine(at) : at;
}

void ScanDeepSeek(absl::string_view text, TextRange range, Pieces& pieces) {
  ScanSome(text, range, pieces, NextDeepSeek);
}

template <int kMost>
void ScanNumerals(absl::string_view text, TextRange range, Pieces& pieces) {
  ScanSome(text, range, pieces, [](const Scan& scan, size_t at) {
    return scan.Numerals(at, kMost);
  });
}

// [U+4E00-U+9FA5 U+3040-U+30FF]+: Han, Hiragana and Katakana, 3 bytes each.
size_t NextCjk(const Scan& scan, size_t at) {
  while (!scan.AtEnd(at) && static_cast<uint8_t>(scan.Byte(at)) >= 0xE3 &&
         static_cast<uint8_t>(scan.Byte(at)) <= 0xE9) {
    const int second = scan.Byte(at + 1) & 0x3F;
    const int c =
        (scan.Byte(at) & 0xF) << 12 | second << 6 | (scan.Byte(at + 2) & 0x3F);
    if (!(c >= 0x4E00 && c <= 0x9FA5) && !(c >= 0x3040 && c <= 0x30FF)) break;
    at += 3;
  }
  return at;
}

void ScanCjk(absl::string_view text, TextRange range, Pieces& pieces) {
  ScanSome(text, range, pieces, NextCjk);
}

struct Row {
  absl::string_view pattern;
  ScanWords scan;
};

constexpr Row kRows[] = {
    {kGpt2Pattern, ScanGpt2},
    {kGpt2ShortPattern, ScanGpt2},
    {kCl100kPattern, ScanCl100k<3, false>},
    {kQwen2Pattern, ScanCl100k<1, false>},
    {kQwen35Pattern, ScanCl100k<1, true>},
    {kO200kPattern, ScanO200k<3, true>},
    {kTekkenPattern, ScanO200k<1, false>},
    {kDeepSeekPattern, ScanDeepSeek},
    {kNumeralPattern, ScanNumerals<1>},
    {kThreeNumeralsPattern, ScanNumerals<3>},
    {kCjkPattern, ScanCjk},
};

}  // namespace

ScanWords FindWordScanner(absl::string_view pattern) {
  const std::string escaped =
      absl::StrReplaceAll(pattern, {{"\r", "\\r"}, {"\n", "\\n"}});
  const auto row = std::find_if(
      std::begin(kRows), std::end(kRows),
      [&escaped](const Row& row) { return row.pattern == escaped; });
  return row == std::end(kRows) ? nullptr : row->scan;
}

std::vector<absl::string_view> ScannedPatterns() {
  std::vector<absl::string_view> patterns;
  for (const Row& row : kRows) patterns.push_back(row.pattern);
  return patterns;
}

}  // namespace penstock
