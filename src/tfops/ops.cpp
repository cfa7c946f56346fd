// The ops VramscopeBytesInUse, VramscopeMaxBytesInUse, VramscopeBytesLimit and VramscopeAllocator.
//
// TensorFlow's op loader expects that loading this file registers its ops; that is why it is a separate library, and why a
// constructor does the work. A kernel reads its device's allocator after its own output is allocated (on a CPU, the output is
// in the same pool and counts) and never waits for the device.
#include <dlfcn.h>

#include <cstdint>
#include <initializer_list>

#include "base/gen/enums.h"
#include "tfops/allocator_stats.h"
#include "tfops/tf_api.h"
#include "vramscope/recorder.h"
#include "vramscope/tensorflow.h"

namespace vramscope::tfops {
namespace {

constexpr int kMarkCheck = static_cast<int>(base::MarkKind::check);

using Mark = decltype(&vramscope_mark);

// The recorder of this process if it is loaded: preloaded, or by a late attach.
Mark recorder_mark() {
  static Mark mark = nullptr;
  if (mark != nullptr) return mark;
  void* symbol = dlsym(RTLD_DEFAULT, "vramscope_mark");
  if (symbol == nullptr) {
    if (void* library = dlopen("libvramscope_inject.so", RTLD_NOLOAD | RTLD_LAZY); library != nullptr)
      symbol = dlsym(library, "vramscope_mark");
  }
  return mark = reinterpret_cast<Mark>(symbol);
}

void fail(KernelContext* context, int code, const char* message) {
  const Api* tf = api();
  Status* status = tf->new_status();
  tf->set_status(status, code, message);
  tf->fail(context, status);
  tf->delete_status(status);
}

enum class Field { current, peak, limit, allocator };

constexpr const char* name_of(Field field) {
  switch (field) {
    case Field::current:
      return "bytes_in_use";
    case Field::peak:
      return "max_bytes_in_use";
    case Field::limit:
      return "bytes_limit";
    case Field::allocator:
      return "allocator";
  }
  return "";
}

std::uint64_t value_of(Field field, const vramscope_tf_stats& stats) {
  switch (field) {
    case Field::current:
      return stats.current_bytes;
    case Field::peak:
      return stats.peak_bytes;
    default:
      return stats.limit_bytes;
  }
}

template <Field field>
void compute(void* mark, KernelContext* context) {
  const Api* tf = api();
  Status* status = tf->new_status();
  Tensor* output = tf->allocate_output(context, 0, kInt64, nullptr, 0, sizeof(std::int64_t), status);
  const bool allocated = tf->get_code(status) == kOk;
  if (!allocated) tf->fail(context, status);
  tf->delete_status(status);
  if (!allocated) return;

  void* allocator = device_allocator(context);
  std::int64_t value = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(allocator));
  if constexpr (field != Field::allocator) {
    vramscope_tf_stats stats;
    switch (read_stats(allocator, stats)) {
      case Answer::ok:
        value = static_cast<std::int64_t>(value_of(field, stats));
        if (mark != nullptr) reinterpret_cast<Mark>(mark)(kMarkCheck, 0, name_of(field), value, nullptr);
        break;
      case Answer::none_kept:
        fail(context, kInvalidArgument,
             "Allocator stats not available for this device; place the op on a GPU, or set TF_CPU_ALLOCATOR_USE_BFC=1 before "
             "TensorFlow is imported");
        break;
      case Answer::unreachable:
        fail(context, kUnimplemented, "vramscope cannot reach the allocator statistics of this TensorFlow release");
        break;
    }
  }
  *static_cast<std::int64_t*>(tf->tensor_data(output)) = value;
  tf->delete_tensor(output);
}

// A kernel's only state is the recorder's entry, so that a running step needs no lookup.
void* create(KernelConstruction*) { return reinterpret_cast<void*>(recorder_mark()); }
void destroy(void*) {}

void infer_scalar(ShapeContext* context, Status* status) {
  ShapeHandle* scalar = api()->scalar(context);
  api()->set_output_shape(context, 0, scalar, status);
  api()->delete_shape(scalar);
}

template <Field field>
void register_op(const char* name) {
  const Api* tf = api();
  Status* status = tf->new_status();
  OpDefinition* op = tf->new_op(name);
  tf->op_output(op, "bytes: int64");
  tf->op_stateful(op, true);
  tf->op_shape(op, infer_scalar);
  tf->register_op(op, status);
  for (const char* device : {"CPU", "GPU"}) {
    KernelBuilder* kernel = tf->new_kernel(name, device, create, compute<field>, destroy);
    tf->host_memory(kernel, "bytes");
    tf->register_kernel(name, kernel, status);
  }
  tf->delete_status(status);
}

[[gnu::constructor]] void register_all() {
  if (api() == nullptr) return;  // the loader then finds no op, and the Python side reports what is missing
  register_op<Field::current>("VramscopeBytesInUse");
  register_op<Field::peak>("VramscopeMaxBytesInUse");
  register_op<Field::limit>("VramscopeBytesLimit");
  register_op<Field::allocator>("VramscopeAllocator");
}

}  // namespace
}  // namespace vramscope::tfops

extern "C" {

[[gnu::visibility("default")]] int vramscope_tf_read_stats(std::uint64_t allocator, vramscope_tf_stats* out) {
  void* const where = reinterpret_cast<void*>(allocator);
  const auto answer = vramscope::tfops::read_stats(where, *out);
  if (answer == vramscope::tfops::Answer::ok && out->largest_free_bytes == VRAMSCOPE_TF_UNKNOWN)
    out->largest_free_bytes = vramscope::tfops::largest_free_bytes(where);
  return static_cast<int>(answer);
}

[[gnu::visibility("default")]] std::uint64_t vramscope_tf_largest_free(std::uint64_t allocator) {
  return vramscope::tfops::largest_free_bytes(reinterpret_cast<void*>(allocator));
}

[[gnu::visibility("default")]] int vramscope_tf_clear_stats(std::uint64_t allocator) {
  return static_cast<int>(vramscope::tfops::clear_stats(reinterpret_cast<void*>(allocator)));
}

}  // extern "C"
