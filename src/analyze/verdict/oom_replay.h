// What replays say about a failed request: the largest batch with which it would have been served, and the settings.
#pragma once

#include <optional>

#include "analyze/verdict/oom_request.h"
#include "analyze/verdict/oom_scene.h"

namespace vramscope::analyze {

// nullopt: a replay with the settings of the recording does not fail there, or it takes too much work.
std::optional<OomReplay> replay_failure(const Engine::State& state, const FailedPool& where, const Stamped<trace::Oom>& oom,
                                        const OomScene& scene, const OomRequest& request);

}  // namespace vramscope::analyze
