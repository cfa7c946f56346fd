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

// TensorFlow's TensorShape: up to six 16-bit or three 32-bit dimensions in 12 bytes, or a pointer; then dtype, the number of
// dimensions and which of the three it is; then the number of elements.
struct RawShape {
  unsigned char bytes[24];
};

// The captured shape's bytes. False where there is no shape, it does not fit into the bytes, or this kind of function (its
// invoker) is not known to capture one: each kind is tried once, called, and compared with what the bytes say.
bool raw_shape(const Library& library, const ShapeFunction& function, RawShape& raw);

// The shape's text, 0 where there is none.
std::uint32_t shape_id(const Library& library, const ShapeFunction& function);
std::uint32_t shape_id(const RawShape& raw);

// TensorFlow says "[0]" where it does not know the shape.
bool is_zero(const RawShape& raw);

}  // namespace vramscope::capture::tensorflow
