// TensorFlow as the analysis knows it.
#include "analyze/framework.h"

#include "analyze/attribute/tensorflow/findings.h"
#include "analyze/attribute/tensorflow/rules.h"
#include "analyze/whatif/recorded.h"
#include "analyze/xla_dump.h"
#include "trace/source.h"

namespace vramscope::analyze::tensorflow {
namespace {

constexpr Rule kRules[] = {
    {"name of an op of an imported profile", Precedence::before_name, rules::imported},
    {"value that the optimizer keeps", Precedence::before_name, rules::kept_by_optimizer},
    {"new value of a slot", Precedence::before_name, rules::replaced_by_optimizer},
    {"result made of scratch", Precedence::before_name, rules::result_from_scratch},
    {"gradient made of scratch", Precedence::before_name, rules::gradient_from_scratch},
    {"array from Python", Precedence::after_name, rules::array_from_python},
    {"XLA executable", Precedence::after_name, rules::xla_executable},
    {"input pipeline", Precedence::last, rules::input_pipeline},
};

// tensorflow/core/framework/types.proto
constexpr std::string_view kDtypes[] = {"",           "float32", "float64",   "int32",   "uint8",   "int16",
                                        "int8",       "string",  "complex64", "int64",   "bool",    "qint8",
                                        "quint8",     "qint32",  "bfloat16",  "qint16",  "quint16", "uint16",
                                        "complex128", "float16", "resource",  "variant", "uint32",  "uint64"};

constexpr Advice kRemedies[] = {
    {Remedy::limit_autotuning,
     "Set TF_CUDNN_WORKSPACE_LIMIT_IN_MB to limit what one trial may take, or TF_CUDNN_USE_AUTOTUNE=0 to turn trials off."},
    {Remedy::return_cached_memory,
     "Call tf.config.experimental.set_memory_growth(gpu, True), or set a limit with tf.config.LogicalDeviceConfiguration."},
    {Remedy::recompute_activations, "tf.recompute_grad"},
    {Remedy::keep_data_on_host, "Build the dataset under tf.device(\"CPU\")."},
    {Remedy::avoid_layout_copies, "Try data_format=\"channels_first\"."},
    {Remedy::keep_a_number, "keep a number (float(x)) or a copy on the host (x.numpy()), not the tensor"},
    {Remedy::lower_precision, "mixed precision (keras.mixed_precision.set_global_policy(\"mixed_float16\"))"},
    {Remedy::raise_limit, "memory_limit of tf.config.LogicalDeviceConfiguration"},
    {Remedy::raise_host_limit, "TF_CPU_BFC_MEM_LIMIT_IN_MB"},
};

constexpr std::string_view kStateOfAnyOptimizer[] = {"_gradient_accumulator", "_average"};  // as Keras names them

constexpr std::string_view kRuleSettings[] = {kXlaPlans, trace::kSourceFormat};
constexpr std::string_view kVersionSettings[] = {"tensorflow.version"};
constexpr std::string_view kDistributions[] = {"tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly"};
constexpr std::string_view kKerasDistributions[] = {"keras"};
constexpr std::string_view kNeeds[] = {"AllocateRaw", "DeallocateRaw"};
constexpr std::string_view kOrdersEvents[] = {"AddTraceMe", "FindChunkPtr"};
constexpr Package kPackages[] = {
    {.module = "tensorflow",
     .distributions = kDistributions,
     .name = "TensorFlow",
     .library = "libtensorflow_framework.so",
     .symbols = "_ZN3tsl",
     .needs = kNeeds,
     .orders_events = kOrdersEvents,
     .tested = "versions 2.15 to 2.21 from pip",
     .host_pool_variable = "TF_CPU_ALLOCATOR_USE_BFC"},
    {.module = "keras", .distributions = kKerasDistributions, .name = "Keras"},
};

// It depends on the card: the most that TensorFlow leaves.
Bytes left_free(Bytes card) { return Bytes{card < Bytes{2} << 30 ? 225u : 1800u} << 20; }

Status set_replay(const Store& store, Bytes /*limit*/, RecordedPool& pool) {
  set_bfc(store, pool, setting(store, "env.TF_ENABLE_GPU_GARBAGE_COLLECTION") != "false");
  return {};
}

constexpr AllocatorSetting kAllocators[] = {
    {"growth", "TF_FORCE_GPU_ALLOW_GROWTH=true"},
    {"preallocated", "TF_FORCE_GPU_ALLOW_GROWTH=false, with a memory limit"},
    {"async", "TF_GPU_ALLOCATOR=cuda_malloc_async"},
};

// Kernels for element-wise ops on a GPU allocate their outputs without a region too, so that only those of libraries are left.
constexpr std::string_view kWorkspaceOps[] = {"Conv", "MatMul", "Cudnn", "BatchNorm", "Einsum", "RNN",
                                              "LSTM", "FFT",    "Sort",  "TopK",      "Unique", "Scratch"};

constexpr std::string_view kScratchOps[] = {"Conv", "Cudnn"};

OpMeaning meaning_of(std::string_view op, std::string_view region) {
  return meaning_by_scopes(op, region, {.scopes_run_forward = true, .workspace_ops = kWorkspaceOps});
}

// A dataset of slices keeps the whole array too, in host memory.
constexpr ArrayConversion kArrayConversion = {
    .function = "convert_to_eager_tensor",
    .on_device = {"Outside tf.function, tf.constant and tf.convert_to_tensor copy a whole array to the device at once.",
                  "Read it batch by batch with tf.data.Dataset.from_tensor_slices, or convert it inside tf.device(\"CPU\")."},
    .on_host = {"tf.constant and tf.convert_to_tensor copy a whole array at once; the array itself may stay as well.",
                "Convert one batch at a time, or read it with tf.data.Dataset.from_generator."},
};

}  // namespace

extern const Framework kFramework;
constinit const Framework kFramework = {
    .id = trace::Framework::tensorflow,
    .word = "tensorflow",
    .name = "TensorFlow",
    .version_settings = kVersionSettings,
    .packages = kPackages,
    .meaning_of = meaning_of,
    .rules = kRules,
    .own_facts = own_facts,
    .rule_settings = kRuleSettings,
    .dtypes = kDtypes,
    .groups_by_purpose = true,
    .names_graph_ops = true,
    .variables_share_blocks = true,
    .pipeline_has_no_ops = true,
    .why_pool_took_card = "Memory growth is off, so the pool took the card at the first tensor.",
    .regions_double = true,
    .left_free = left_free,
    .set_replay = set_replay,
    .allocators = kAllocators,
    .ops_with_scratch = kScratchOps,
    .keeps_unfactored_state = true,  // Keras' Adafactor
    .state_of_any_optimizer = kStateOfAnyOptimizer,
    // On the host, with oneDNN, the peaks of a small convolutional network differ by 30 % from run to run; otherwise, and on a
    // GPU, by 3 % (docs/dev/measurements.md).
    .order_error_on_host = 0.3,
    .order_error_on_gpu = 0.05,
    .remedies = kRemedies,
    .retraces = {"was traced {} times; each trace keeps its graph",
                 "Pass tensors instead of Python values, create the function once, or set reduce_retracing=True."},
    .array_conversion = kArrayConversion,
    .layout_copies = "LayoutOptimizer",
    .findings = findings,
};

}  // namespace vramscope::analyze::tensorflow
