// Shapes as text ids, mostly without calling TensorFlow: the annotation holds a function that captured a TensorShape, and its 24
// raw bytes are read instead of formatting a string each time.
#pragma once

#include <cstdint>

#include "capture/tensorflow/library.h"

namespace vramscope::capture::tensorflow {

// std::function<std::string()> in libstdc++'s layout.
struct ShapeFunction {
  const void* captured[2];
  void* manager;
  ReturnedString* (*invoke)(ReturnedString* out, const ShapeFunction* self);
};

// 0 where there is none. Each kind of function (its invoker) is tried once: called, and compared with what the raw bytes say;
// where they differ, it is called every time.
// "[0]" for a block that has bytes is how TensorFlow says "unknown": 0 as well.
std::uint32_t shape_id(const Library& library, const ShapeFunction& function, std::uint64_t requested);

}  // namespace vramscope::capture::tensorflow
