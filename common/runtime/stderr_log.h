#pragma once

#include <string>

#include "common/base/log.h"

namespace penstock {

// One log line: time=... level=... role=... msg="..." key=value ... A value
// with spaces, quotes, '=' or control characters is quoted and escaped, so a
// line stays a line whatever a client sent.
std::string FormatLogLine(absl::string_view time, LogLevel level,
                          absl::string_view role, absl::string_view message,
                          std::initializer_list<LogField> fields);

// Writes lines to stderr, each with one write. Thread-safe, takes no lock.
class StderrLog : public LogSink {
 public:
  // `role`: "router", "prefill", "decode", ...
  StderrLog(std::string role, LogLevel least);
  void Write(LogLevel level, absl::string_view message,
             std::initializer_list<LogField> fields) override;

 private:
  const std::string role_;
  const LogLevel least_;
};

}  // namespace penstock
