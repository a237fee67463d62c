#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "router/core/slot_set.h"

namespace penstock {

// Decisions look at so many slots at a time.
inline constexpr size_t kSlotsAtOnce = 64;

// What decisions read of every worker, one entry or bit for each slot, so that
// they pass over thousands of workers in a few microseconds. Slots without a
// worker are in no set; there are as many as to be looked at without a rest.
// Written by ClusterView, from its workers.
struct WorkerColumns {
  SlotSet prefill, decode;  // by role, less what the router vetoes for it
  SlotSet vetoed_prefill;
  SlotSet ready, draining;
  SlotSet on_time;                   // not suspect
  SlotSet room;                      // for another request
  std::vector<double> ahead;         // seconds until what it has is done
  std::vector<double> prefill_pace;  // see WorkerPace
  // How many times as long as assumed an answer takes: the pace of decode,
  // times 1 + k/(1-k) of the KV memory in use; see MemoryPressure.
  std::vector<double> stretch;
  std::vector<int> requests;  // there now
  // Tokens of one sequence, at most; INT64_MAX: it stops at its context.
  std::vector<int64_t> capacity;
  int64_t least_capacity = 0;
  std::vector<int> context;  // tokens of a prompt, at most
  int least_context = 0;
  // Workers of one number have equal layout, content, numerics and transports.
  std::vector<int> pairing;
  std::vector<uint64_t> name_hash;
};

}  // namespace penstock
