// TensorFlow's description of the allocation that the calling thread is making: op, step, region type, dtype, shape.
#pragma once

#include <cstdint>

#include "capture/tensorflow/library.h"

namespace vramscope::capture::tensorflow {

struct Annotation {
  std::uint32_t op = 0;  // string ids
  std::uint32_t shape = 0;
  std::uint16_t region = 0;
  std::uint8_t dtype = 0;
  std::int64_t step = 0;
};

// Empty if TensorFlow gives no description. Also empty if its layout is unknown: that is reported once on stderr, and the
// annotation is not read again.
Annotation read_annotation(const Library& library);

}  // namespace vramscope::capture::tensorflow
