// What TensorFlow says about the allocation that a thread is making: op, step, region type, dtype, shape.
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

// Empty where TensorFlow says nothing, or where its layout is not one that we know (then said once, and never read again).
Annotation read_annotation(const Library& library);

}  // namespace vramscope::capture::tensorflow
