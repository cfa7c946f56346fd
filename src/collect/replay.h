// Takes over what another collector stored before it died.
#pragma once

#include <filesystem>
#include <vector>

#include "collect/process_trace.h"
#include "support/result.h"

namespace vramscope::collect {

// Writes every event of the trace at `partial` again. Bit n of the result: event n was there.
Result<std::vector<bool>> replay(const std::filesystem::path& partial, ProcessTrace& into);

}  // namespace vramscope::collect
