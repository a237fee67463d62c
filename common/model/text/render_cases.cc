// Renders the templates of a file of cases, to compare with another renderer:
//   render_cases < CASES
// A case is a line of JSON with `template` and `variables`; its answer a line
// with `text`, or `error` (a status code) and `message`. strftime_now tells
// 2024-07-05 09:04:03.

#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/json_reader.h"
#include "common/model/text/jinja/parser.h"
#include "common/model/text/jinja/renderer.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<std::string> Render(const Json& row) {
  ASSIGN_OR_RETURN(const jinja::Value variables,
                   jinja::ReadJson(row["variables"].dump()));
  jinja::Scopes::Variables globals;
  for (const auto& [name, value] : variables.dict()->items) {
    globals[std::string(name.bytes())] = value;
  }
  ASSIGN_OR_RETURN(const jinja::Body body,
                   jinja::Parse(row["template"].get<std::string>()));
  ASSIGN_OR_RETURN(
      const jinja::Text text,
      jinja::Render(body, globals, {CivilTime{2024, 7, 5, 9, 4, 3}},
                    jinja::Limits()));
  return std::string(text.bytes());
}

int Main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    const absl::StatusOr<std::string> text = Render(Json::parse(line));
    Json answer;
    if (text.ok()) {
      answer["text"] = *text;
    } else {
      answer["error"] = absl::StatusCodeToString(text.status().code());
      answer["message"] = std::string(text.status().message());
    }
    std::cout << answer.dump() << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace penstock

int main() { return penstock::Main(); }
