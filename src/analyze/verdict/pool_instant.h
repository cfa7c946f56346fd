// What there is to say about a pool at one instant. Works on answers that were computed before.
#pragma once

#include "analyze/api.h"
#include "analyze/gen/view_answers.h"

namespace vramscope::analyze {

// `map` is the pool at that instant; `remedy` is what to do about a failed request (remedy_of_failure()).
PoolInstant pool_instant(const Engine& engine, const AddressMap& map, const Fragmentation& fragmentation, const Ooms& ooms,
                         std::string_view remedy);

// The failed request of this moment; NULL if there is none.
const OomEvent* failure_at(const Ooms& ooms, Moment at);

}  // namespace vramscope::analyze
