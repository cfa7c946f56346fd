#pragma once

namespace vramscope::capture::cuda {

// Takes over the driver's entries in a process that has already loaded it: import tables, and the function pointers that
// libraries keep in their own data (the CUDA runtime, the tables of TensorFlow and XLA). What a library keeps on the heap
// cannot be reached. Returns the number of places; also 0 if there is no driver.
int attach_late();

}  // namespace vramscope::capture::cuda
