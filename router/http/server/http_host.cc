#include "router/http/server/http_host.h"

#include <utility>

#include "boost/asio/post.hpp"
#include "router/http/server/http_output.h"

namespace penstock {

void HttpHost::Post(absl::AnyInvocable<void()> task) {
  std::lock_guard<std::mutex> lock(mutex);
  tasks.push_back(std::move(task));
  if (tasks.size() > 1) return;  // whoever runs the first runs all
  boost::asio::post(io, [host = self] {
    const std::shared_ptr<HttpHost> alive = host.lock();
    if (alive != nullptr) alive->RunTasks();
  });
}

void HttpHost::RunTasks() {
  std::vector<absl::AnyInvocable<void()>> now;
  {
    std::lock_guard<std::mutex> lock(mutex);
    now.swap(tasks);
  }
  in_round = true;
  for (auto& task : now) task();
  in_round = false;
  for (const auto& output : std::exchange(to_flush, {})) output->Flush();
}

}  // namespace penstock
