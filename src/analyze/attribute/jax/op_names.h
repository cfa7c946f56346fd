// Names in programs of JAX: of ops, "jit(train_step)/transpose(jvp(encoder))/dense_0/dot_general", and of arguments,
// "params['encoder']['dense_0']['kernel']", where XLA may have put a backslash before each quote.
#pragma once

#include <string_view>

#include "analyze/attribute/op_names.h"

namespace vramscope::analyze::jax {

bool is_name(std::string_view name);

// The scopes without what JAX adds to them are the layer, "encoder/dense_0". Ops under transpose() belong to the backward pass,
// others under jvp() to the forward pass. For an argument, the path without its ends.
OpMeaning meaning_of_op(std::string_view op);

}  // namespace vramscope::analyze::jax
