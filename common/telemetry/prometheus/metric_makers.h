#pragma once

#include <utility>

#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/labels.h"
#include "prometheus/registry.h"

namespace penstock {

// Metrics of a registry, which keeps them. A family has a series for each set
// of labels; the others make a family's only one.

inline prometheus::Family<prometheus::Counter>& Counters(
    prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

inline prometheus::Family<prometheus::Gauge>& Gauges(
    prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

inline prometheus::Counter& Counter(prometheus::Registry& registry,
                                    const prometheus::Labels& labels,
                                    const char* name, const char* help) {
  return Counters(registry, name, help).Add(labels);
}

inline prometheus::Gauge& Gauge(prometheus::Registry& registry,
                                const prometheus::Labels& labels,
                                const char* name, const char* help) {
  return Gauges(registry, name, help).Add(labels);
}

inline prometheus::Histogram& Histogram(
    prometheus::Registry& registry, const prometheus::Labels& labels,
    const char* name, const char* help,
    prometheus::Histogram::BucketBoundaries buckets) {
  return prometheus::BuildHistogram()
      .Name(name)
      .Help(help)
      .Register(registry)
      .Add(labels, std::move(buckets));
}

}  // namespace penstock
