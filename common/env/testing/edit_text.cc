#include "common/env/testing/edit_text.h"

namespace penstock {

void EditText(absl::Span<const absl::string_view> words, Random& random,
              std::string& text) {
  constexpr uint64_t kMostRepeats = 300;
  const size_t at = random.Below(text.size() + 1);
  const size_t length = random.Below(12);
  const std::string word(words[random.Below(words.size())]);
  switch (random.Below(5)) {
    case 0:
      text.insert(at, word);
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, text.substr(random.Below(text.size() + 1), length));
      break;
    case 3: {
      std::string run;
      for (uint64_t i = random.Below(kMostRepeats); i > 0; --i) run += word;
      text.insert(at, run);
      break;
    }
    default:
      if (at < text.size()) text[at] = static_cast<char>(random.Next());
  }
}

}  // namespace penstock
