#include "common/model/text/token_search.h"

#include <memory>

#include "common/model/text/small_vocabulary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Ids from 256 on: "ab", "abc", "bc" and "x\n".
std::unique_ptr<Tokenizer> Example() {
  const std::string newline = ByteAlphabet().Character('\n');
  return *CreateTokenizer(
      SmallVocabulary({"a b", "ab c", "b c", "x " + newline}));
}

TEST(TokenSearchTest, FindsEveryTokenThatHoldsANeedle) {
  const auto tokenizer = Example();
  EXPECT_THAT(TokensThatHold(*tokenizer, {"\n"}), ElementsAre('\n', 259));
  EXPECT_THAT(TokensThatHold(*tokenizer, {"bc"}), ElementsAre(257, 258));
  EXPECT_THAT(TokensThatHold(*tokenizer, {"c", "ab", "abcd"}),
              ElementsAre('c', 256, 257, 258));
  EXPECT_THAT(TokensThatHold(*tokenizer, {"ca"}), IsEmpty());
  EXPECT_THAT(TokensThatHold(*tokenizer, {}), IsEmpty());
}

TEST(TokenSearchTest, SpecialTokensHoldNothing) {
  const auto tokenizer = Example();
  // "<" is a byte of its own and in <tool>, which is user-defined text, but
  // not in <s> or </s>.
  const std::vector<TokenId> found = TokensThatHold(*tokenizer, {"<"});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], '<');
  EXPECT_EQ(tokenizer->TokenBytes(found[1]), "<tool>");
}

}  // namespace
}  // namespace penstock
