#pragma once

#include <cstdint>

#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace penstock {

// The shared KV store's figures as Prometheus metrics. Called on one thread;
// scraped from any.
class StoreMetrics {
 public:
  // Totals since the start, and what is there now.
  struct Figures {
    int workers = 0;
    uint64_t memory_pages = 0;
    uint64_t memory_page_limit = 0;
    uint64_t disk_pages = 0;
    uint64_t disk_bytes = 0;
    uint64_t puts = 0;
    uint64_t gets = 0;
    uint64_t get_hits = 0;
    uint64_t bad_pages = 0;
    uint64_t evicted = 0;
  };

  // The registry outlives the metrics.
  explicit StoreMetrics(prometheus::Registry& registry);

  void Observe(const Figures& figures);

 private:
  prometheus::Gauge& workers_;
  prometheus::Gauge& memory_pages_;
  prometheus::Gauge& memory_page_limit_;
  prometheus::Gauge& disk_pages_;
  prometheus::Gauge& disk_bytes_;
  prometheus::Counter& puts_;
  prometheus::Counter& gets_;
  prometheus::Counter& get_hits_;
  prometheus::Counter& bad_pages_;
  prometheus::Counter& evicted_;
};

}  // namespace penstock
