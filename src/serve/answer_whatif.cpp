// A step with another batch, program or allocator.
#include "serve/engine_service.h"
#include "support/sentence.h"

namespace vramscope::serve {

Result<WhatifAnswer> EngineService::whatif(const WhatifParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  WhatifAnswer out;
  const auto& step = (*found)->whatif();
  if (!step) {
    out.empty = Absence{"Nothing can be replayed", support::as_sentence(step.error().message), {}};
    return out;
  }
  auto answer = step->answer({params.batch, params.accumulate, params.precision, params.optimizer, params.allocator});
  if (!answer) {
    out.empty = Absence{"This change cannot be computed", support::as_sentence(answer.error().message), {}};
    answer = step->answer({});  // the controls stay
    if (!answer) return out;
  }
  for (std::string& change : answer->changes) change = support::as_sentence(change);
  out.step = std::move(*answer);
  return out;
}

}  // namespace vramscope::serve
