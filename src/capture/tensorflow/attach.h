#pragma once

namespace vramscope::capture::tensorflow {

// Takes over TensorFlow's entries in a process that has loaded it already. Returns the number of places that were redirected.
int attach_late();

}  // namespace vramscope::capture::tensorflow
