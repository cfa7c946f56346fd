#pragma once

namespace vramscope::capture::cuda {

// Takes over the driver's entries in a process that has loaded it already: import tables, and the function pointers that
// libraries keep in their own data (the CUDA runtime, the tables of TensorFlow and XLA). What a library keeps on the heap is out
// of reach. Returns the number of places; 0 also when there is no driver.
int attach_late();

}  // namespace vramscope::capture::cuda
