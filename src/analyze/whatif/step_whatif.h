// One steady step with another batch, program or allocator: quick enough to follow a slider.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/gen/view_answers.h"
#include "analyze/whatif/recorded.h"

namespace vramscope::analyze {

// Each empty for "as recorded"; values are those of the choices that the answer names.
struct StepWhatifRequest {
  std::string batch, accumulate, precision, optimizer, allocator;
};

// Immutable: answers may be asked for by several threads. Valid as long as the engine.
class StepWhatif {
 public:
  // An error if nothing can be replayed.
  static Result<StepWhatif> of(const Engine& engine);
  Result<WhatifStep> answer(const StepWhatifRequest& request) const;
  // Requests that differ from the recording in one thing.
  std::vector<StepWhatifRequest> single_changes() const;

 private:
  StepWhatif(const Engine& engine, RecordedPool recorded) : engine_(&engine), recorded_(std::move(recorded)) {}
  Result<WhatifStep> computed(const StepWhatifRequest& request) const;
  void add_choices();

  const Engine* engine_;
  RecordedPool recorded_;                  // what is live when the step begins is section 0, the step itself section 1
  std::vector<whatif::Scaling> scalings_;  // by block
  std::optional<std::uint64_t> batch_;     // as recorded; otherwise, batches are in percent
  std::string about_;                      // "step 12"
  WhatifStep base_;                        // as recorded, with all choices
};

}  // namespace vramscope::analyze
