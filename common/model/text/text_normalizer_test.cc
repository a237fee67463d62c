#include "common/model/text/text_normalizer.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

using Kind = NormalizerStep::Kind;

std::string Apply(const std::vector<NormalizerStep>& steps,
                  absl::string_view text) {
  const auto normalizer = TextNormalizer::Create(steps);
  EXPECT_TRUE(normalizer.ok()) << normalizer.status();
  const auto made = normalizer->Apply(text);
  EXPECT_TRUE(made.ok()) << made.status();
  return *made;
}

NormalizerStep Step(Kind kind, std::string pattern = "",
                    std::string text = "") {
  NormalizerStep step;
  step.kind = kind;
  step.pattern = std::move(pattern);
  step.text = std::move(text);
  return step;
}

TEST(TextNormalizer, NormalFormsAreUnicodes) {
  // Examples of UAX 15.
  EXPECT_EQ(Apply({Step(Kind::kNfc)}, "D\u0307\u0323"), "\u1E0C\u0307");
  EXPECT_EQ(Apply({Step(Kind::kNfd)}, "\u1E0C\u0307"), "D\u0323\u0307");
  EXPECT_EQ(Apply({Step(Kind::kNfc)}, "\u212B\uFB01"), "\u00C5\uFB01");
  EXPECT_EQ(Apply({Step(Kind::kNfkc)}, "\uFB01\u2075"), "fi5");
  EXPECT_EQ(Apply({Step(Kind::kNfkd)}, "\u1E9B\u0323"), "s\u0323\u0307");
  EXPECT_EQ(Apply({Step(Kind::kNfc)}, "\u1100\u1161"), "\uAC00");
  EXPECT_EQ(Apply({Step(Kind::kNfc)}, "ascii only\n"), "ascii only\n");
}

TEST(TextNormalizer, LowercaseIsOfEachCharacter) {
  EXPECT_EQ(Apply({Step(Kind::kLowercase)}, "\u00C9A\u0130\u1E9E"),
            "\u00E9ai\u0307\u00DF");
}

TEST(TextNormalizer, StripTakesWhiteSpaceOfTheEndsAskedFor) {
  NormalizerStep strip = Step(Kind::kStrip);
  strip.left = true;
  EXPECT_EQ(Apply({strip}, " \u3000a b\n"), "a b\n");
  strip.right = true;
  EXPECT_EQ(Apply({strip}, " \u3000a b\n"), "a b");
  EXPECT_EQ(Apply({strip}, " \t "), "");
  strip.left = false;
  EXPECT_EQ(Apply({strip}, " a \u2028"), " a");
}

TEST(TextNormalizer, ReplacesLiteralsAndMatches) {
  EXPECT_EQ(Apply({Step(Kind::kPrepend, "", "\u2581"),
                   Step(Kind::kReplace, " ", "\u2581")},
                  "a b"),
            "\u2581"
            "a\u2581"
            "b");
  EXPECT_EQ(Apply({Step(Kind::kPrepend, "", "\u2581")}, ""), "");
  EXPECT_EQ(Apply({Step(Kind::kReplaceRegex, " {2,}", "\\0")}, "a   b c"),
            "a\\0b c");
  EXPECT_EQ(Apply({Step(Kind::kReplaceRegex, "x*", "-")}, "a\u00E9"),
            "-a-\u00E9-");
  EXPECT_EQ(Apply({Step(Kind::kReplaceRegex, "^ +| +$", "")}, "  a b "), "a b");
}

TEST(TextNormalizer, RefusesWhatCannotBeReplaced) {
  for (const Kind kind : {Kind::kReplace, Kind::kReplaceRegex}) {
    EXPECT_EQ(TextNormalizer::Create({{Step(kind, "", "x")}}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  const auto growing = TextNormalizer::Create(std::vector<NormalizerStep>(
      8, Step(Kind::kReplace, "a", std::string(200, 'a'))));
  ASSERT_TRUE(growing.ok());
  EXPECT_EQ(growing->Apply("a").status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace penstock
