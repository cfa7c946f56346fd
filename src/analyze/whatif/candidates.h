// The allocators and settings that can be asked for by name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/whatif/recorded.h"

namespace vramscope::analyze {

struct Candidate {
  std::string name, setting;
  whatif::Scenario scenario;
};

// As users write them.
std::vector<std::string> allocator_names();

// That of the recording first; then what was asked for, or everything that may help the framework.
Result<std::vector<Candidate>> candidates(const RecordedPool& recorded, std::string_view asked);

// Just one: that of the recording if nothing was asked for.
Result<Candidate> candidate(const RecordedPool& recorded, std::string_view asked);

}  // namespace vramscope::analyze
