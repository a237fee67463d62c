#include "common/model/files/json_document.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// Watches the parser: keys once in each object, depth within the limit.
class Watch {
 public:
  explicit Watch(int max_depth) : max_depth_(max_depth) {}

  // False drops the value, which keeps memory bounded.
  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    if (too_deep_) return false;
    if (event == Event::object_start || event == Event::array_start) {
      too_deep_ |= depth >= max_depth_;
      if (event == Event::object_start) keys_.emplace_back();
    } else if (event == Event::object_end) {
      keys_.pop_back();
    } else if (event == Event::key) {
      const std::string& key = value.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second && duplicate_.empty()) {
        duplicate_ = QuoteForError(key);
      }
    }
    return !too_deep_;
  }

  bool too_deep() const { return too_deep_; }
  // Quoted; empty when there was none.
  const std::string& duplicate() const { return duplicate_; }

 private:
  const int max_depth_;
  std::vector<std::set<std::string>> keys_;  // of the objects around
  bool too_deep_ = false;
  std::string duplicate_;
};

}  // namespace

absl::StatusOr<Json> ParseJsonObject(absl::string_view text,
                                     const JsonLimits& limits,
                                     const ModelErrorMaker& errors) {
  auto wrong = [&](ModelError error, std::string found, std::string expected) {
    return errors.Make(error, {.field = "JSON",
                               .found = std::move(found),
                               .expected = std::move(expected)});
  };
  if (text.size() > limits.max_bytes) {
    return wrong(ModelError::kJson, absl::StrCat(text.size(), " bytes"),
                 absl::StrCat("at most ", limits.max_bytes));
  }
  Watch watch(limits.max_depth);
  Json json = Json::parse(
      text.begin(), text.end(),
      [&](int depth, Json::parse_event_t event, Json& value) {
        return watch(depth, event, value);
      },
      /*allow_exceptions=*/false);
  if (watch.too_deep()) {
    return wrong(ModelError::kJson, "objects or arrays nested too deep",
                 absl::StrCat("at most ", limits.max_depth, " levels"));
  }
  if (!json.is_object()) {
    return wrong(ModelError::kJson, QuoteForError(text.substr(0, 40)),
                 "a whole JSON object in UTF-8");
  }
  if (!watch.duplicate().empty()) {
    return wrong(ModelError::kDuplicateKey,
                 absl::StrCat("the key ", watch.duplicate(), " again"),
                 "each key once");
  }
  return json;
}

}  // namespace penstock
