#pragma once

#include "prometheus/histogram.h"

namespace penstock {

// Seconds; vLLM's buckets, so that dashboards made for it work here.
inline prometheus::Histogram::BucketBoundaries FirstTokenBuckets() {
  return {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
          1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
}

inline prometheus::Histogram::BucketBoundaries InterTokenBuckets() {
  return {.01, .025, .05, .075, .1,  .15, .2, .3, .4, .5,
          .75, 1,    2.5, 5,    7.5, 10,  20, 40, 80};
}

inline prometheus::Histogram::BucketBoundaries RequestBuckets() {
  return {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
          30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
}

inline prometheus::Histogram::BucketBoundaries TransferBuckets() {
  return {.0001, .0005, .001, .0025, .005, .01, .025, .05,
          .1,    .25,   .5,   1,     2.5,  5,   10};
}

}  // namespace penstock
