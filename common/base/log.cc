#include "common/base/log.h"

#include <atomic>

namespace penstock {
namespace {
std::atomic<LogSink*> sink{nullptr};
}  // namespace

void SetLogSink(LogSink* new_sink) {
  sink.store(new_sink, std::memory_order_release);
}

void Log(LogLevel level, absl::string_view message,
         std::initializer_list<LogField> fields) {
  if (LogSink* s = sink.load(std::memory_order_acquire)) {
    s->Write(level, message, fields);
  }
}

}  // namespace penstock
