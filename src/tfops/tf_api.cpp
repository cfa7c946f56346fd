#include "tfops/tf_api.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

namespace vramscope::tfops {
namespace {

// Python loads TensorFlow with RTLD_LOCAL: its symbols are only reachable through a handle of that very file.
int remember_framework(dl_phdr_info* info, std::size_t, void* found) {
  const char* file = std::strrchr(info->dlpi_name, '/');
  if (file == nullptr || std::strncmp(file + 1, "libtensorflow_framework.so", 26) != 0) return 0;
  *static_cast<void**>(found) = dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
  return 1;
}

template <typename Function>
bool find(Function& out, const char* name) {
  out = reinterpret_cast<Function>(dlsym(framework_handle(), name));
  return out != nullptr;
}

bool load(Api& a) {
  return find(a.new_status, "TF_NewStatus") && find(a.delete_status, "TF_DeleteStatus") && find(a.set_status, "TF_SetStatus") &&
         find(a.get_code, "TF_GetCode") && find(a.new_op, "TF_NewOpDefinitionBuilder") &&
         find(a.op_output, "TF_OpDefinitionBuilderAddOutput") && find(a.op_stateful, "TF_OpDefinitionBuilderSetIsStateful") &&
         find(a.op_shape, "TF_OpDefinitionBuilderSetShapeInferenceFunction") && find(a.register_op, "TF_RegisterOpDefinition") &&
         find(a.scalar, "TF_ShapeInferenceContextScalar") && find(a.set_output_shape, "TF_ShapeInferenceContextSetOutput") &&
         find(a.delete_shape, "TF_DeleteShapeHandle") && find(a.new_kernel, "TF_NewKernelBuilder") &&
         find(a.host_memory, "TF_KernelBuilder_HostMemory") && find(a.register_kernel, "TF_RegisterKernelBuilder") &&
         find(a.allocate_output, "TF_AllocateOutput") && find(a.tensor_data, "TF_TensorData") &&
         find(a.delete_tensor, "TF_DeleteTensor") && find(a.fail, "TF_OpKernelContext_Failure");
}

}  // namespace

void* framework_handle() {
  static void* handle = nullptr;
  if (handle == nullptr) dl_iterate_phdr(remember_framework, &handle);
  return handle;
}

const Api* api() {
  static Api table;
  static const bool complete = framework_handle() != nullptr && load(table);
  return complete ? &table : nullptr;
}

}  // namespace vramscope::tfops
