#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace penstock {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// One key=value of a structured log line.
struct LogField {
  absl::string_view key;
  std::string value;
};

// Where log lines go. The process installs one at start-up (see
// common/runtime); until then, and in tests that do not care, lines vanish.
// Write may be called from any thread.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void Write(LogLevel level, absl::string_view message,
                     std::initializer_list<LogField> fields) = 0;
};

// The sink must outlive every later Log call; null turns logging off.
void SetLogSink(LogSink* sink);

// Example: Log(LogLevel::kInfo, "worker registered", {{"worker", name}});
void Log(LogLevel level, absl::string_view message,
         std::initializer_list<LogField> fields = {});

}  // namespace penstock
