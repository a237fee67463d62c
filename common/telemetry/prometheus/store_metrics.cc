#include "common/telemetry/prometheus/store_metrics.h"

#include "common/telemetry/prometheus/metric_makers.h"

namespace penstock {
namespace {

// Totals only rise.
void RaiseTo(prometheus::Counter& counter, uint64_t total) {
  counter.Increment(static_cast<double>(total) - counter.Value());
}

}  // namespace

StoreMetrics::StoreMetrics(prometheus::Registry& registry)
    : workers_(Gauge(registry, {}, "penstock_kvstore_workers",
                     "Workers that are attached")),
      memory_pages_(Gauge(registry, {}, "penstock_kvstore_memory_pages",
                          "Pages held in memory")),
      memory_page_limit_(Gauge(registry, {},
                               "penstock_kvstore_memory_page_limit",
                               "Pages that memory holds")),
      disk_pages_(Gauge(registry, {}, "penstock_kvstore_disk_pages",
                        "Pages held on disk")),
      disk_bytes_(
          Gauge(registry, {}, "penstock_kvstore_disk_bytes", "Bytes of files")),
      puts_(Counter(registry, {}, "penstock_kvstore_puts_total",
                    "Pages that came from workers")),
      gets_(Counter(registry, {}, "penstock_kvstore_gets_total",
                    "Pages that workers asked for")),
      get_hits_(Counter(registry, {}, "penstock_kvstore_get_hits_total",
                        "Pages that were there")),
      bad_pages_(Counter(registry, {}, "penstock_kvstore_bad_pages_total",
                         "Pages that failed a check, and were not served")),
      evicted_(Counter(registry, {}, "penstock_kvstore_evicted_total",
                       "Pages that gave way to others in memory")) {}

void StoreMetrics::Observe(const Figures& figures) {
  workers_.Set(figures.workers);
  memory_pages_.Set(static_cast<double>(figures.memory_pages));
  memory_page_limit_.Set(static_cast<double>(figures.memory_page_limit));
  disk_pages_.Set(static_cast<double>(figures.disk_pages));
  disk_bytes_.Set(static_cast<double>(figures.disk_bytes));
  RaiseTo(puts_, figures.puts);
  RaiseTo(gets_, figures.gets);
  RaiseTo(get_hits_, figures.get_hits);
  RaiseTo(bad_pages_, figures.bad_pages);
  RaiseTo(evicted_, figures.evicted);
}

}  // namespace penstock
