#include "record/settings.h"

#include <stdlib.h>
#include <string.h>

#include "record/recorder.h"
#include "record/text.h"

namespace vramscope::record {

namespace {

// Allocator options, device selection, launcher ranks. No paths, no names of people or machines, nothing that could be a
// secret.
constexpr const char* kAllowed[] = {
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MODULE_LOADING",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_ALLOCATOR",
    "TF_ENABLE_GPU_GARBAGE_COLLECTION",
    "TF_DEVICE_MIN_SYS_MEMORY_IN_MB",
    "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC",
    "TF_DETERMINISTIC_ALLOCATOR",
    "TF_FORCE_UNIFIED_MEMORY",
    "TF_GPU_HOST_MEM_LIMIT_IN_MB",
    "TF_CPU_ALLOCATOR_USE_BFC",
    "TF_CPU_BFC_MEM_LIMIT_IN_MB",
    "TF_PER_DEVICE_MEMORY_LIMIT_MB",
    "TF_XLA_FLAGS",
    "TF_USE_LEGACY_KERAS",
    "KERAS_BACKEND",
    "TF_ENABLE_ONEDNN_OPTS",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB",
    "NCCL_BUFFSIZE",
    "NCCL_MAX_NCHANNELS",
    "CUPY_GPU_MEMORY_LIMIT",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "NODE_RANK",
    "TORCHELASTIC_RESTART_COUNT",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_RESTART_COUNT",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "PMI_RANK",
    "PMI_SIZE",
    "MPI_LOCALRANKID",
    "PMIX_RANK",
    "TPU_WORKER_ID",
    "JOB_COMPLETION_INDEX",
};

// Variables with the rank of a process.
struct Launcher {
  const char* name;
  const char* rank;
  const char* world;
  const char* local;
};
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
    {"mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"pmix", "PMIX_RANK", nullptr, nullptr},
};

void setting_from(const char* key, const char* variable) {
  const char* value = variable != nullptr ? getenv(variable) : nullptr;
  if (value != nullptr && strlen(value) < 32) setting(key, value);
}

// A helper of a rank (reported by the Python side: a data loader's worker) inherits the environment of its rank but has none
// itself.
void record_rank() {
  if (getenv("VRAMSCOPE_ROLE") != nullptr) {
    setting_from("role", "VRAMSCOPE_ROLE");
    return;
  }
  for (const Launcher& launcher : kLaunchers) {
    if (getenv(launcher.rank) == nullptr) continue;
    setting("launcher", launcher.name);
    setting_from("rank", launcher.rank);
    setting_from("world_size", launcher.world);
    setting_from("local_rank", launcher.local);
    return;
  }
}

}  // namespace

void record_environment() {
  record_rank();
  for (const char* name : kAllowed) {
    const char* value = getenv(name);
    if (value == nullptr || strlen(value) > 512) continue;
    Text<128> key;
    key.add("env.").add(name);
    setting(key.c_str(), value);
  }
}

}  // namespace vramscope::record
