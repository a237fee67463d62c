#include "common/env/timers.h"

namespace penstock {

TimerId Timers::Schedule(Instant deadline, std::function<void()> callback) {
  TimerId id = next_id_++;
  pending_.emplace(Key{deadline, id}, std::move(callback));
  deadlines_[id] = deadline;
  return id;
}

void Timers::Cancel(TimerId id) {
  auto it = deadlines_.find(id);
  if (it == deadlines_.end()) return;
  pending_.erase(Key{it->second, id});
  deadlines_.erase(it);
}

bool Timers::RunOne(Instant now) {
  if (pending_.empty() || pending_.begin()->first.first > now) return false;
  auto node = pending_.extract(pending_.begin());
  deadlines_.erase(node.key().second);
  node.mapped()();
  return true;
}

int Timers::RunDue(Instant now) {
  int ran = 0;
  while (RunOne(now)) ++ran;
  return ran;
}

Instant Timers::NextDeadline() const {
  return pending_.empty() ? Instant::Infinite() : pending_.begin()->first.first;
}

}  // namespace penstock
