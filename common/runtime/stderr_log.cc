#include "common/runtime/stderr_log.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace penstock {
namespace {

absl::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "?";
}

bool NeedsQuotes(absl::string_view value) {
  if (value.empty()) return true;
  for (char c : value) {
    if (!absl::ascii_isgraph(c) || c == '"' || c == '=' || c == '\\') {
      return true;
    }
  }
  return false;
}

void AppendField(std::string* line, absl::string_view key,
                 absl::string_view value) {
  if (NeedsQuotes(value)) {
    absl::StrAppend(line, " ", key, "=\"", absl::Utf8SafeCEscape(value), "\"");
  } else {
    absl::StrAppend(line, " ", key, "=", value);
  }
}

}  // namespace

std::string FormatLogLine(absl::string_view time, LogLevel level,
                          absl::string_view role, absl::string_view message,
                          std::initializer_list<LogField> fields) {
  std::string line = absl::StrCat("time=", time, " level=", LevelName(level));
  AppendField(&line, "role", role);
  AppendField(&line, "msg", message);
  for (const LogField& field : fields) {
    AppendField(&line, field.key, field.value);
  }
  line.push_back('\n');
  return line;
}

StderrLog::StderrLog(std::string role, LogLevel least)
    : role_(std::move(role)), least_(least) {}

void StderrLog::Write(LogLevel level, absl::string_view message,
                      std::initializer_list<LogField> fields) {
  if (level < least_) return;
  const std::string line =
      FormatLogLine(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(),
                                     absl::UTCTimeZone()),
                    level, role_, message, fields);
  // A log that cannot be written has nowhere to say so.
  [[maybe_unused]] const ssize_t written =
      ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace penstock
