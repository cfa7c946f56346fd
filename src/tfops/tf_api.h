// The part of TensorFlow's stable C API that the ops need, without its headers: one library serves every TensorFlow release.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramscope::tfops {

// Opaque in the C API.
struct Status;
struct Tensor;
struct OpDefinition;
struct KernelBuilder;
struct KernelConstruction;
struct KernelContext;
struct ShapeContext;
struct ShapeHandle;

inline constexpr int kInt64 = 9;            // TF_INT64
inline constexpr int kInvalidArgument = 3;  // TF_INVALID_ARGUMENT
inline constexpr int kUnimplemented = 12;   // TF_UNIMPLEMENTED
inline constexpr int kOk = 0;

struct Api {
  Status* (*new_status)();
  void (*delete_status)(Status*);
  void (*set_status)(Status*, int code, const char* message);
  int (*get_code)(const Status*);

  OpDefinition* (*new_op)(const char* name);
  void (*op_output)(OpDefinition*, const char* spec);
  void (*op_stateful)(OpDefinition*, bool);
  void (*op_shape)(OpDefinition*, void (*infer)(ShapeContext*, Status*));
  void (*register_op)(OpDefinition*, Status*);
  ShapeHandle* (*scalar)(ShapeContext*);
  void (*set_output_shape)(ShapeContext*, int index, ShapeHandle*, Status*);
  void (*delete_shape)(ShapeHandle*);

  KernelBuilder* (*new_kernel)(const char* op, const char* device, void* (*create)(KernelConstruction*),
                               void (*compute)(void*, KernelContext*), void (*destroy)(void*));
  void (*host_memory)(KernelBuilder*, const char* argument);
  void (*register_kernel)(const char* name, KernelBuilder*, Status*);

  Tensor* (*allocate_output)(KernelContext*, int index, int dtype, const std::int64_t* dims, int rank, std::size_t bytes,
                             Status*);
  void* (*tensor_data)(const Tensor*);
  void (*delete_tensor)(Tensor*);
  void (*fail)(KernelContext*, Status*);
};

// Handle of libtensorflow_framework as it is loaded in this process, or NULL.
void* framework_handle();

// NULL when TensorFlow is not loaded or lacks one of the functions.
const Api* api();

}  // namespace vramscope::tfops
