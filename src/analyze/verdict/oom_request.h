// What a failed request was for, and what its batch has to do with it.
#pragma once

#include <string>

#include "analyze/attribute/categories.h"
#include "analyze/index/store.h"
#include "analyze/verdict/oom_scene.h"

namespace vramscope::analyze {

struct OomRequest {
  Shown category = Shown::unknown;
  std::string layer, line;
};

// As earlier requests of the same op, otherwise by the op's name.
OomRequest request_of(const Engine::State& state, const FailedPool& where, const Stamped<trace::Oom>& oom);

// "activations of conv2d_1 (train.py:12)"; empty if nothing is known.
std::string in_words(const OomRequest& request);

// What is live when a request fails, divided by what a smaller batch would change.
struct LiveAtOom {
  Bytes with_batch = 0;  // activations, their gradients, inputs, workspaces
  Bytes fixed = 0;       // parameters, optimizer state, and all else
  Bytes parameters = 0, optimizer_state = 0;
  std::string largest_layer;  // by its activations
  Bytes largest_activations = 0;
};
LiveAtOom live_at_oom(const Store& store, const PoolSet& pools, Moment at);

bool grows_with_batch(Shown category);

// The largest part of the batch, in percent, with which the request would have fit into `capacity`; 0: none, or it is not known.
unsigned fitting_percent(const LiveAtOom& live, const OomRequest& request, Bytes requested, Bytes capacity);

}  // namespace vramscope::analyze
