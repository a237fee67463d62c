#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/engine/kept_kv.h"
#include "common/engine/sequence.h"
#include "common/engine/sequence_state.h"
#include "common/engine/worker_context.h"
#include "common/model/generate_request.h"
#include "common/peer/leg.h"

namespace penstock {

// What lets an attempt go on after an earlier one. All on the engine thread.

// `leg.delivered` is hostile input: INVALID_ARGUMENT names what is out of
// bounds, what no leg of its kind can go on after, or what the request can not
// have delivered.
absl::Status CheckDelivered(const LegRequest& leg, const RequestLimits& limits);

// What the client has of one of a leg's answers; empty: nothing.
absl::Span<const DeliveredToken> DeliveredOf(const LegRequest& leg, int sample);
// The same as it was drawn.
AnswerDraws DrawsOf(absl::Span<const DeliveredToken> delivered);

// Appends what the client has of its answer to a sequence where nothing was
// drawn yet, so that it goes on as if it had made all of it; returns what that
// gave. INVALID_ARGUMENT: it goes on after its end.
absl::StatusOr<std::vector<TokenDelivery>> Replay(
    absl::Span<const DeliveredToken> delivered, Sequence& sequence);

// Gives a sequence that the engine does not have yet what an earlier leg of its
// request left here, unless the prefix cache has as much. Nothing stays kept.
void AdoptKept(const WorkerContext& context, Sequence& sequence);

// Whether a leg that its peer ended with this code is one whose KV the next
// attempt wants: nobody gave the request up, and nothing is wrong with it.
bool WorthKeeping(absl::StatusCode code);

// Takes the KV that a sequence has, for its request's next leg. Nothing is
// computed: nullopt. `sequence` may be null.
std::optional<KeptKv::Prefix> KeepableOf(std::unique_ptr<Sequence> sequence);

// Keeps a prefix for the request's next leg unless more of it is kept already;
// returns how much is kept. The conditions of KeptKv::Keep.
int KeepForNextLeg(const WorkerContext& context, RequestId request,
                   KeptKv::Prefix prefix);

}  // namespace penstock
