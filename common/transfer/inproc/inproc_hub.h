#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/transfer/progress/page_receiver.h"

namespace penstock {

// Who in this process can be written to: the receivers of its workers, by
// name. Thread-safe.
class InprocHub {
 public:
  // The one of the process; tests make their own.
  static InprocHub& Process();

  struct Entry {
    PageReceiver* receiver = nullptr;
    WakeBell* bell = nullptr;
    uint64_t access_key = 0;
  };

  // ALREADY_EXISTS: a worker of this name is there. What the entry points to
  // lives until Remove has returned.
  absl::Status Add(const std::string& name, const Entry& entry);

  // Waits until nobody uses the entry.
  void Remove(const std::string& name);

  // Keeps an entry from being removed while a page lands.
  class Lease {
   public:
    Lease(InprocHub* hub, std::string name, Entry entry)
        : hub_(hub), name_(std::move(name)), entry_(entry) {}
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    const Entry& operator*() const { return entry_; }
    const Entry* operator->() const { return &entry_; }

   private:
    InprocHub* hub_;
    std::string name_;
    Entry entry_;
  };

  // Nothing: no worker of this name is there (any more).
  std::optional<Lease> Use(const std::string& name);

 private:
  struct Slot {
    Entry entry;
    int users = 0;
    bool leaving = false;
  };

  std::mutex mutex_;
  std::condition_variable unused_;
  std::map<std::string, Slot> slots_;  // guarded by mutex_
};

}  // namespace penstock
