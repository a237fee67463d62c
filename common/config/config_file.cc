#include "common/config/config_file.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace penstock {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr size_t kMaxConfigBytes = 1 << 20;

// Levenshtein distance.
int Distance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      int change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

void CollectKeys(const Descriptor& type, std::vector<std::string>& keys) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    keys.push_back(field.name());
    if (field.message_type() != nullptr)
      CollectKeys(*field.message_type(), keys);
  }
}

// Keeps the first error, and says what an unknown key may have meant.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(const Descriptor& type) { CollectKeys(type, keys_); }

  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = absl::StrCat("line ", line + 1, ": ", message, Nearest(message));
  }
  const std::string& text() const { return text_; }

 private:
  std::string Nearest(const std::string& message) const {
    constexpr absl::string_view kUnknown = "has no field named \"";
    size_t at = message.find(kUnknown.data(), 0, kUnknown.size());
    if (at == std::string::npos) return "";
    std::string name = message.substr(at + kUnknown.size());
    name = name.substr(0, name.find('"'));
    auto best = std::min_element(keys_.begin(), keys_.end(),
                                 [&](const auto& a, const auto& b) {
                                   return Distance(name, a) < Distance(name, b);
                                 });
    return best == keys_.end() ? ""
                               : absl::StrCat(" Did you mean \"", *best, "\"?");
  }

  std::vector<std::string> keys_;
  std::string text_;
};

}  // namespace

absl::Status ParseConfig(const std::string& text, const std::string& path,
                         google::protobuf::Message& message) {
  FirstError error(*message.GetDescriptor());
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(text, &message)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", error.text()));
  }
  const FieldDescriptor* version =
      message.GetDescriptor()->FindFieldByName("version");
  uint32_t found = message.GetReflection()->GetUInt32(message, version);
  if (found != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": version is ", found, "; it must be 1"));
  }
  return absl::OkStatus();
}

absl::Status ReadConfigFile(const std::string& path,
                            google::protobuf::Message& message) {
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("config file ", path, " cannot be read"));
  }
  std::string text(kMaxConfigBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxConfigBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": larger than ", kMaxConfigBytes, " bytes"));
  }
  return ParseConfig(text, path, message);
}

}  // namespace penstock
