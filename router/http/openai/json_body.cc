#include "router/http/openai/json_body.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

absl::Status BadBody(absl::string_view why) {
  return MakeError(ErrorReason::kInvalidField,
                   absl::StrCat("the body is not a JSON object: ", why));
}

// Builds values as the parser meets them, within limits.
class Builder : public nlohmann::json_sax<ApiJson> {
 public:
  explicit Builder(const JsonBodyLimits& limits) : limits_(limits) {}

  bool null() override { return Add(ApiJson()); }
  bool boolean(bool value) override { return Add(ApiJson(value)); }
  bool number_integer(int64_t value) override { return Add(ApiJson(value)); }
  bool number_unsigned(uint64_t value) override { return Add(ApiJson(value)); }
  bool number_float(double value, const std::string&) override {
    return Add(ApiJson(value));
  }
  bool string(std::string& value) override {
    return Add(ApiJson(std::move(value)));
  }
  bool binary(ApiJson::binary_t&) override { return Fail("binary data"); }
  bool start_object(size_t) override { return Open(ApiJson::object()); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(ApiJson::array()); }
  bool end_array() override { return Close(); }

  bool key(std::string& name) override {
    Container& top = open_.back();
    if (!top.keys.insert(name).second) {
      return Fail(
          absl::StrCat("the key \"", ShortForError(name), "\" comes twice"));
    }
    top.key = std::move(name);
    return true;
  }

  bool parse_error(size_t offset, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(absl::StrCat("it breaks off or goes wrong at byte ", offset));
  }

  const absl::Status& status() const { return status_; }
  ApiJson Take() { return std::move(root_); }

 private:
  struct Container {
    ApiJson value;
    std::string key;  // of the member that comes next
    absl::flat_hash_set<std::string> keys;
  };

  bool Fail(absl::string_view why) {
    if (status_.ok()) status_ = BadBody(why);
    return false;
  }

  bool Count() {
    if (++values_ <= limits_.max_values) return true;
    return Fail(
        absl::StrCat("it holds more than ", limits_.max_values, " values"));
  }

  bool Add(ApiJson value) {
    if (!Count()) return false;
    Place(std::move(value));
    return true;
  }

  bool Open(ApiJson empty) {
    if (!Count()) return false;
    if (static_cast<int>(open_.size()) >= limits_.max_depth) {
      return Fail(
          absl::StrCat("it nests deeper than ", limits_.max_depth, " levels"));
    }
    open_.push_back({std::move(empty), "", {}});
    return true;
  }

  bool Close() {
    ApiJson done = std::move(open_.back().value);
    open_.pop_back();
    Place(std::move(done));
    return true;
  }

  void Place(ApiJson value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Container& top = open_.back();
    if (top.value.is_array()) {
      top.value.get_ptr<ApiJson::array_t*>()->push_back(std::move(value));
      return;
    }
    // Known to be new: straight to the end, without the map's linear search.
    top.value.get_ptr<ApiJson::object_t*>()->emplace_back(std::move(top.key),
                                                          std::move(value));
  }

  const JsonBodyLimits limits_;
  std::vector<Container> open_;
  size_t values_ = 0;
  ApiJson root_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<ApiJson> ParseJsonBody(absl::string_view body,
                                      const JsonBodyLimits& limits) {
  if (body.empty()) return BadBody("it is empty");
  Builder builder(limits);
  const bool parsed =
      ApiJson::sax_parse(body.data(), body.data() + body.size(), &builder);
  if (!builder.status().ok()) return builder.status();
  ApiJson root = builder.Take();
  if (!parsed || !root.is_object()) {
    return BadBody(absl::StrCat("it is of type ", root.type_name()));
  }
  return root;
}

std::string ShortForError(absl::string_view text) {
  constexpr size_t kMaxBytes = 64;
  if (text.size() <= kMaxBytes) return std::string(text);
  size_t end = kMaxBytes;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

std::string DumpJson(const ApiJson& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false,
                    ApiJson::error_handler_t::replace);
}

}  // namespace penstock
