#include "common/model/text/jinja/json_reader.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace penstock::jinja {
namespace {

// Takes what the JSON library's parser finds, without recursion.
class Reader : public nlohmann::json_sax<nlohmann::json> {
 public:
  absl::StatusOr<Value> Take() && {
    if (!status_.ok()) return status_;
    return std::move(top_);
  }

  bool null() override { return Add(Value()); }
  bool boolean(bool value) override { return Add(Value(value)); }
  bool number_integer(number_integer_t value) override {
    return Add(Value(static_cast<int64_t>(value)));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return TooMuch("an integer over 64 bits");
    }
    return Add(Value(static_cast<int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return Add(Value(value));
  }
  bool string(string_t& value) override { return Add(TextValue(value, true)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override { return Open(false); }
  bool key(string_t& name) override {
    open_.back().key = name;
    return true;
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(true); }
  bool end_array() override { return Close(); }

  bool parse_error(size_t offset, const std::string&,
                   const nlohmann::detail::exception&) override {
    status_ = absl::InvalidArgumentError(
        absl::StrCat("is no JSON at offset ", offset));
    return false;
  }

 private:
  // An object or array that is not closed yet.
  struct Container {
    bool array;
    List list;
    Dict dict;
    std::map<std::string, size_t> places;  // of the dictionary's keys
    std::string key;
  };

  bool TooMuch(absl::string_view what) {
    status_ = absl::ResourceExhaustedError(absl::StrCat("has ", what));
    return false;
  }

  bool Open(bool array) {
    if (open_.size() >= static_cast<size_t>(kMaxJsonDepth)) {
      return TooMuch(absl::StrCat("nesting deeper than ", kMaxJsonDepth));
    }
    open_.emplace_back();
    open_.back().array = array;
    return true;
  }

  bool Close() {
    Container done = std::move(open_.back());
    open_.pop_back();
    return Add(done.array ? Value(std::move(done.list))
                          : Value(std::move(done.dict)));
  }

  bool Add(Value value) {
    if (++values_ > kMaxJsonValues) {
      return TooMuch(absl::StrCat("more than ", kMaxJsonValues, " values"));
    }
    if (open_.empty()) {
      top_ = std::move(value);
      return true;
    }
    Container& into = open_.back();
    int& depth = into.array ? into.list.depth : into.dict.depth;
    depth = std::max(depth, value.depth() + 1);
    if (into.array) {
      into.list.items.push_back(std::move(value));
      return true;
    }
    const auto [place, fresh] =
        into.places.emplace(into.key, into.dict.items.size());
    if (fresh) {
      into.dict.items.emplace_back(Text(into.key, true), std::move(value));
    } else {
      into.dict.items[place->second].second = std::move(value);
    }
    return true;
  }

  std::vector<Container> open_;
  Value top_;
  size_t values_ = 0;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Value> ReadJson(absl::string_view text) {
  Reader reader;
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return std::move(reader).Take();
}

}  // namespace penstock::jinja
