// Text ids of shapes, usually without calling TensorFlow: the annotation contains a function that has captured a TensorShape, and
// the shape's 24 bytes are read instead of having a string formatted each time.
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

// TensorFlow's TensorShape: 12 bytes with up to six 16-bit or three 32-bit dimensions, or a pointer to them; then the dtype, the
// number of dimensions, and which of the three forms it is; then the number of elements.
struct RawShape {
  unsigned char bytes[24];
};

// Reads the bytes of the captured shape. False if there is no shape, if it does not fit into the bytes, or if this kind of
// function (its invoker) does not capture one. Each kind is checked once: the function is called, and its text compared with the
// bytes.
bool raw_shape(const Library& library, const ShapeFunction& function, RawShape& raw);

// String id of the shape's text; 0 if there is no shape.
std::uint32_t shape_id(const Library& library, const ShapeFunction& function);
std::uint32_t shape_id(const RawShape& raw);

// Whether the shape is "[0]", which TensorFlow uses for an unknown one.
bool is_zero(const RawShape& raw);

}  // namespace vramscope::capture::tensorflow
