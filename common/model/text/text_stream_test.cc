#include "common/model/text/text_stream.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/env/random.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// Whether some continuation of `bytes` is one well-formed character, decided
// by arithmetic on the range of scalar values that the bytes leave open.
bool StartsSomeCharacter(absl::string_view bytes) {
  const auto lead = static_cast<uint8_t>(bytes[0]);
  int length = 0;
  uint32_t low = 0;
  if (lead < 0x80) {
    length = 1, low = lead;
  } else if (lead >> 5 == 6) {
    length = 2, low = lead & 0x1F;
  } else if (lead >> 4 == 14) {
    length = 3, low = lead & 0x0F;
  } else if (lead >> 3 == 30) {
    length = 4, low = lead & 0x07;
  } else {
    return false;
  }
  if (bytes.size() > static_cast<size_t>(length)) return false;
  uint32_t high = low;
  for (int i = 1; i < length; ++i) {
    uint32_t from = 0;
    uint32_t to = 63;
    if (static_cast<size_t>(i) < bytes.size()) {
      const auto byte = static_cast<uint8_t>(bytes[i]);
      if (byte >> 6 != 2) return false;
      from = to = byte & 0x3F;
    }
    low = low << 6 | from;
    high = high << 6 | to;
  }
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  low = std::max(low, kLeast[length]);
  high = std::min<uint32_t>(high, 0x10FFFF);
  // Something is left beside the surrogates.
  return low <= high && !(low >= 0xD800 && high <= 0xDFFF);
}

bool IsWhole(absl::string_view bytes) {
  if (bytes.size() > 4 || !StartsSomeCharacter(bytes)) return false;
  return !StartsSomeCharacter(std::string(bytes) + "\x80") &&
         !StartsSomeCharacter(std::string(bytes) + "\x90") &&
         !StartsSomeCharacter(std::string(bytes) + "\xA0") &&
         !StartsSomeCharacter(std::string(bytes) + "\xBF");
}

// Replacement of maximal subparts by definition: the longest run from here
// that is the start of some character; one byte when there is none.
std::string Replaced(absl::string_view bytes) {
  std::string text;
  size_t at = 0;
  while (at < bytes.size()) {
    size_t length = 0;
    while (at + length < bytes.size() &&
           StartsSomeCharacter(bytes.substr(at, length + 1))) {
      ++length;
    }
    if (length > 0 && IsWhole(bytes.substr(at, length))) {
      text.append(bytes.data() + at, length);
    } else {
      text += "\xEF\xBF\xBD";
    }
    at += std::max<size_t>(length, 1);
  }
  return text;
}

// Bytes that collide with the edges of the well-formed ranges far more often
// than uniform ones.
char EdgeByte(Random& random) {
  static constexpr uint8_t kBytes[] = {
      'a',  0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF,
      0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
  return static_cast<char>(kBytes[random.Below(sizeof(kBytes))]);
}

TEST(Utf8Assembler, AgreesWithDefinitionUnderRandomSplits) {
  SeededRandom random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    const uint64_t length = random.Below(24);
    for (uint64_t i = 0; i < length; ++i) bytes.push_back(EdgeByte(random));
    Utf8Assembler assembler;
    std::string text;
    size_t at = 0;
    while (at < bytes.size()) {
      const size_t take = std::min<size_t>(random.Below(4), bytes.size() - at);
      text += assembler.Push(absl::string_view(bytes).substr(at, take));
      ASSERT_LE(assembler.tail().size(), 3u);
      at += take;
      assembler = Utf8Assembler(assembler.tail());
    }
    text += assembler.Flush();
    ASSERT_EQ(text, Replaced(bytes)) << "round " << round;
    ASSERT_TRUE(assembler.tail().empty());
  }
}

TEST(Utf8Assembler, DeliversACharacterWithItsLastByte) {
  Utf8Assembler assembler;
  EXPECT_EQ(assembler.Push("\xF0\x9F"), "");
  EXPECT_EQ(assembler.Push("\x98"), "");
  EXPECT_EQ(assembler.Push("\x80!"), "\xF0\x9F\x98\x80!");
  EXPECT_EQ(assembler.Flush(), "");
}

TEST(Utf8Assembler, IllFormedBytesDoNotWait) {
  Utf8Assembler assembler;
  EXPECT_EQ(assembler.Push("\xFF"), "\xEF\xBF\xBD");
  EXPECT_EQ(assembler.Push("\xE0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(assembler.Push("\xC3"), "");
  EXPECT_EQ(assembler.Flush(), "\xEF\xBF\xBD");
}

TEST(Utf8Assembler, KnowsItsStates) {
  EXPECT_TRUE(Utf8Assembler::IsTail(""));
  EXPECT_TRUE(Utf8Assembler::IsTail("\xF0\x9F\x98"));
  EXPECT_FALSE(Utf8Assembler::IsTail("a"));
  EXPECT_FALSE(Utf8Assembler::IsTail("\x80"));
  EXPECT_FALSE(Utf8Assembler::IsTail("\xC3\xA9"));
  EXPECT_FALSE(Utf8Assembler::IsTail("\xE0\x80"));
}

// What must be delivered of `text` in the end, and whether it stops: the first
// end of any stop string, the longest of those that end there.
StopMatcher::Result Oracle(const std::vector<std::string>& stops,
                           const std::string& text) {
  for (size_t end = 0; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (stop.size() <= end &&
          text.compare(end - stop.size(), stop.size(), stop) == 0) {
        longest = std::max(longest, stop.size());
      }
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

// The longest end of `text` that begins some stop string.
size_t OracleHeld(const std::vector<std::string>& stops,
                  const std::string& text) {
  for (size_t length = text.size(); length > 0; --length) {
    for (const std::string& stop : stops) {
      if (stop.compare(0, length, text, text.size() - length, length) == 0 &&
          length < stop.size()) {
        return length;
      }
    }
  }
  return 0;
}

std::string RandomText(Random& random, uint64_t max, uint64_t letters) {
  std::string text;
  const uint64_t length = random.Below(max + 1);
  for (uint64_t i = 0; i < length; ++i) {
    text.push_back(static_cast<char>('a' + random.Below(letters)));
  }
  return text;
}

TEST(StopMatcher, AgreesWithWholeStringSearchUnderRandomSplits) {
  SeededRandom random(2);
  int stopped = 0;
  for (int round = 0; round < 30000; ++round) {
    const uint64_t letters = 1 + random.Below(3);
    std::vector<std::string> stops;
    const uint64_t count = random.Below(4);
    for (uint64_t i = 0; i < count; ++i) {
      stops.push_back(RandomText(random, 6, letters));
      stops.back().push_back(random.Below(2) == 0 ? 'a' : 'b');
    }
    const std::string text = RandomText(random, 30, letters);
    const StopMatcher::Result expected = Oracle(stops, text);
    StopMatcher matcher(stops);
    StopMatcher::Result result;
    size_t at = 0;
    while (at < text.size() && !result.stopped) {
      const size_t take = std::min<size_t>(random.Below(5), text.size() - at);
      const StopMatcher::Result step = matcher.Push(text.substr(at, take));
      at += take;
      result.text += step.text;
      result.stopped = step.stopped;
      if (!result.stopped) {
        const std::string seen = text.substr(0, at);
        ASSERT_EQ(result.text + matcher.held(), seen);
        ASSERT_EQ(matcher.held().size(), OracleHeld(stops, seen));
        matcher = StopMatcher(matcher.stops(), matcher.held());
      }
    }
    if (!result.stopped) result.text += matcher.Flush();
    ASSERT_EQ(result.text, expected.text) << "round " << round;
    ASSERT_EQ(result.stopped, expected.stopped) << "round " << round;
    stopped += result.stopped ? 1 : 0;
  }
  EXPECT_GT(stopped, 5000);
  EXPECT_LT(stopped, 25000);
}

TEST(StopMatcher, HoldsOnlyWhatMayBecomeAStop) {
  StopMatcher matcher({"END", "\n\n"});
  EXPECT_EQ(matcher.Push("the E").text, "the ");
  EXPECT_EQ(matcher.held(), "E");
  EXPECT_EQ(matcher.Push("N").text, "");
  EXPECT_EQ(matcher.Push("Z\n").text, "ENZ");
  const StopMatcher::Result last = matcher.Push("\nmore");
  EXPECT_EQ(last.text, "");
  EXPECT_TRUE(last.stopped);
}

TEST(StopMatcher, FlushGivesBackWhatWasHeld) {
  StopMatcher matcher({"stop"});
  EXPECT_EQ(matcher.Push("non-sto").text, "non-");
  EXPECT_EQ(matcher.Flush(), "sto");
  EXPECT_EQ(matcher.Push("p").text, "p");
}

TEST(StopMatcherDeathTest, RefusesStatesThatCannotBe) {
  EXPECT_DEATH(StopMatcher({""}), "empty stop");
  EXPECT_DEATH(StopMatcher({"ab"}, "x"), "not the state");
  EXPECT_DEATH(StopMatcher({"ab"}, "ab"), "not the state");
}

}  // namespace
}  // namespace penstock
