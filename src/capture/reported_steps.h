// Whether the program or its Python side reports training steps. Steps that the recorder infers itself would only be added to
// them.
#pragma once

namespace vramscope::capture {

bool steps_are_reported();

}  // namespace vramscope::capture
