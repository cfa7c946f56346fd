// The instants of a run that are worth looking at, and which of them is the evidence for a finding. Works on answers that were
// computed before.
#pragma once

#include <string>
#include <vector>

#include "analyze/api.h"
#include "analyze/gen/view_answers.h"

namespace vramscope::analyze {

// Failed requests, where the pool grew although enough was free, where the most was free but unusable, peaks, and the end.
// `fragmentation` may be NULL.
std::vector<NotableInstant> notable_instants(const Engine& engine, const Ooms& ooms, const Fragmentation* fragmentation);

// "out of memory: 1.0 GiB requested", with its step if `step` is positive.
std::string failure_label(const OomEvent& event, std::int64_t step = 0);

// The instant to show for a finding. Fragmentation: where it made a request fail, else where it made the pool grow the most.
std::string instant_of(const Engine& engine, const Ooms& ooms, const Fragmentation* fragmentation, const Finding& finding);

// What to do about a failed request. Where a leak filled the memory, that is what ends the leak.
std::string remedy_of_failure(const Ooms& ooms, const Findings& findings);

}  // namespace vramscope::analyze
