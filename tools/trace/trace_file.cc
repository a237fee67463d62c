#include "tools/trace/trace_file.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

using Json = nlohmann::json;

constexpr absl::string_view kCsvHeader =
    "TIMESTAMP,ContextTokens,GeneratedTokens";
// More than any context; sums over a trace stay far from 64 bits.
constexpr int64_t kMaxTokens = int64_t{1} << 24;
constexpr int64_t kMaxMillis = int64_t{1} << 42;  // 139 years
constexpr size_t kMaxRequests = size_t{1} << 24;

absl::Status OutOfRange(absl::string_view field, int64_t most) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be a whole number from 0 to ", most));
}

// A whole number from 0 to `most`, or INVALID_ARGUMENT with the field's name.
absl::StatusOr<int64_t> Count(const Json& object, const char* field,
                              int64_t most) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number_unsigned() ||
      found->get<uint64_t>() > static_cast<uint64_t>(most)) {
    return OutOfRange(field, most);
  }
  return found->get<int64_t>();
}

absl::StatusOr<std::vector<uint64_t>> Hashes(const Json& object, int input) {
  std::vector<uint64_t> hashes;
  const auto found = object.find("hash_ids");
  if (found == object.end()) return hashes;
  const size_t runs = (input + kTraceBlockTokens - 1) / kTraceBlockTokens;
  if (!found->is_array() || found->size() != runs) {
    return absl::InvalidArgumentError(
        absl::StrCat("hash_ids must be a list of ", runs, " ids, one for each ",
                     kTraceBlockTokens, " tokens of input_length"));
  }
  hashes.reserve(runs);
  for (const Json& id : *found) {
    if (!id.is_number_unsigned()) return OutOfRange("hash_ids", INT64_MAX);
    hashes.push_back(id.get<uint64_t>());
  }
  return hashes;
}

// When it came, on the trace's own clock.
struct Line {
  absl::Duration at;
  TraceRequest request;
};

absl::StatusOr<Line> ParseJsonLine(absl::string_view text) {
  const Json object = Json::parse(text.begin(), text.end(), nullptr,
                                  /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError("not a JSON object");
  }
  Line line;
  ASSIGN_OR_RETURN(const int64_t at, Count(object, "timestamp", kMaxMillis));
  ASSIGN_OR_RETURN(const int64_t in, Count(object, "input_length", kMaxTokens));
  ASSIGN_OR_RETURN(const int64_t out,
                   Count(object, "output_length", kMaxTokens));
  line.at = absl::Milliseconds(at);
  line.request.input_tokens = static_cast<int>(std::max<int64_t>(in, 1));
  line.request.output_tokens = static_cast<int>(std::max<int64_t>(out, 1));
  ASSIGN_OR_RETURN(line.request.hashes, Hashes(object, static_cast<int>(in)));
  return line;
}

absl::StatusOr<int> CsvCount(absl::string_view field, absl::string_view text) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < 0 || value > kMaxTokens) {
    return OutOfRange(field, kMaxTokens);
  }
  return static_cast<int>(std::max<int64_t>(value, 1));
}

absl::StatusOr<Line> ParseCsvLine(absl::string_view text) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text, ',');
  if (fields.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("not three fields ", kCsvHeader));
  }
  Line line;
  absl::Time at;
  if (!absl::ParseTime("%Y-%m-%d%t%H:%M:%E*S", fields[0], &at, nullptr)) {
    return absl::InvalidArgumentError(
        "TIMESTAMP must look like 2023-11-16 18:17:03.9799600");
  }
  line.at = at - absl::UnixEpoch();
  ASSIGN_OR_RETURN(line.request.input_tokens,
                   CsvCount("ContextTokens", fields[1]));
  ASSIGN_OR_RETURN(line.request.output_tokens,
                   CsvCount("GeneratedTokens", fields[2]));
  return line;
}

}  // namespace

absl::StatusOr<std::vector<TraceRequest>> ParseTrace(absl::string_view text) {
  std::vector<Line> lines;
  bool csv = false;
  int number = 0;
  for (absl::string_view raw : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripSuffix(raw, "\r");
    if (line.empty()) continue;
    if (number == 1 && line == kCsvHeader) {
      csv = true;
      continue;
    }
    absl::StatusOr<Line> parsed =
        csv ? ParseCsvLine(line) : ParseJsonLine(line);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", parsed.status().message()));
    }
    if (lines.size() == kMaxRequests) {
      return absl::InvalidArgumentError(
          absl::StrCat("more than ", kMaxRequests, " requests"));
    }
    lines.push_back(*std::move(parsed));
  }
  if (lines.empty()) return absl::InvalidArgumentError("no request is in it");
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.at < b.at; });
  std::vector<TraceRequest> requests;
  requests.reserve(lines.size());
  for (Line& line : lines) {
    line.request.at = line.at - lines.front().at;
    requests.push_back(std::move(line.request));
  }
  return requests;
}

absl::StatusOr<std::vector<TraceRequest>> ReadTraceFile(
    const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)),
                         std::istreambuf_iterator<char>());
  if (!in) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  absl::StatusOr<std::vector<TraceRequest>> requests = ParseTrace(text);
  if (!requests.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", requests.status().message()));
  }
  return requests;
}

}  // namespace penstock
