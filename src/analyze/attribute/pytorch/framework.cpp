// PyTorch as the analysis knows it.
#include "analyze/framework.h"

#include "analyze/attribute/pytorch/op_names.h"
#include "analyze/attribute/pytorch/replay.h"
#include "analyze/attribute/pytorch/rules.h"

namespace vramscope::analyze::pytorch {
namespace {

constexpr Rule kRules[] = {
    {"cuBLAS workspace", Precedence::before_name, rules::blas_workspace},
    {"scratch of one op", Precedence::before_name, rules::scratch_of_node},
    {"batch of a loop without an optimizer", Precedence::after_name, rules::batch_of_loop},
    {"batch", Precedence::last, rules::batch},
};

constexpr Advice kRemedies[] = {
    {Remedy::limit_autotuning,
     "Set torch.backends.cudnn.benchmark = False, or torch.backends.cudnn.benchmark_limit = 1 to try fewer algorithms."},
    {Remedy::return_cached_memory,
     "Call torch.cuda.empty_cache() after the part that needed it, or set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."},
    {Remedy::return_empty_regions, "Call torch.cuda.empty_cache() after the part that made the pool grow."},
    {Remedy::recompute_activations, "torch.utils.checkpoint"},
    {Remedy::avoid_fragmentation, "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: segments can then grow in place"},
    {Remedy::keep_a_number, "keep a number (x.item()) or a copy on the host (x.detach().cpu()), not the tensor"},
    {Remedy::lower_precision, "mixed precision (torch.autocast)"},
    {Remedy::raise_limit, "torch.cuda.set_per_process_memory_fraction"},
};

constexpr std::string_view kVersionSettings[] = {"torch.version", "pytorch.version"};
constexpr std::string_view kDistributions[] = {"torch"};
constexpr std::string_view kNeeds[] = {"reportMemoryUsageToProfiler"};
constexpr Package kPackages[] = {{.module = "torch",
                                  .distributions = kDistributions,
                                  .name = "PyTorch",
                                  .library = "lib/libc10.so",
                                  .symbols = "_ZN3c10",
                                  .needs = kNeeds}};

// A small request takes a segment of 2 MiB, a medium-sized one a segment of 20 MiB.
Bytes smallest_region(Bytes requested) {
  constexpr Bytes kMiB = 1u << 20;
  if (requested <= kMiB) return 2 * kMiB;
  return requested < 10 * kMiB ? 20 * kMiB : (requested + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
}

// max-split rarely helps, and makes runs with changing shapes much worse.
constexpr AllocatorSetting kAllocators[] = {
    {"default", "PYTORCH_CUDA_ALLOC_CONF="},
    {"expandable", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
    {"divisions", "PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:4"},
    {"max-split", "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:256", false},
    {"async", "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync"},
};

// cuDNN offers several plans for a convolution. PyTorch tries the next one if there is no memory for the workspace of the first.
constexpr std::string_view kTriesOtherPlans[] = {"Conv"};

}  // namespace

extern const Framework kFramework;
constinit const Framework kFramework = {
    .id = trace::Framework::pytorch,
    .word = "pytorch",
    .name = "PyTorch",
    .version_settings = kVersionSettings,
    .packages = kPackages,
    .meaning_of = meaning_of,
    .rules = kRules,
    .own_facts = own_facts,
    .reports_backward = true,
    .steps_begin_by_allocating = true,
    .smallest_region = smallest_region,
    .pool_owner = "PyTorch",
    .reports_limit = true,
    .set_replay = set_replay,
    .allocators = kAllocators,
    .allocator_variable = "PYTORCH_CUDA_ALLOC_CONF",
    .ops_with_optional_workspace = kTriesOtherPlans,
    .adds_to_gradients = true,
    .remedies = kRemedies,
};

}  // namespace vramscope::analyze::pytorch
