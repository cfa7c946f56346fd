// JAX as the analysis knows it.
#include "analyze/framework.h"

#include "analyze/attribute/jax/findings.h"
#include "analyze/attribute/jax/op_names.h"
#include "analyze/attribute/jax/rules.h"
#include "analyze/whatif/recorded.h"

namespace vramscope::analyze::jax {
namespace {

constexpr Rule kRules[] = {
    {"temporaries of a program", Precedence::after_name, rules::temporaries_of_program},
    {"results that a step uses up", Precedence::after_name, rules::results_used_up},
};

constexpr std::string_view kVersionSettings[] = {"jax.version"};
constexpr std::string_view kDistributions[] = {"jax"};
constexpr Package kPackages[] = {
    {.module = "jax", .distributions = kDistributions, .name = "JAX", .remark = ", on a GPU through its CUDA plugin"}};

constexpr std::string_view kFoundBy = "jax.allocator_found_by";  // one value per plugin
constexpr SettingNote kSettingNotes[] = {
    {kFoundBy, "symbols", "the allocator of the plugin was found by its symbols"},
    {kFoundBy, "type information", "the allocator of the plugin was found by its type information"},
    {kFoundBy, "none", "the plugin has no known allocator: arrays are recorded, temporaries of programs are not"},
};

constexpr Advice kRemedies[] = {
    {Remedy::return_cached_memory,
     "Set XLA_PYTHON_CLIENT_PREALLOCATE=false to take memory as it is needed, or XLA_PYTHON_CLIENT_MEM_FRACTION to take less."},
    {Remedy::recompute_activations, "jax.checkpoint"},
    {Remedy::keep_a_number, "keep a number (float(x)) or a copy on the host (jax.device_get(x)), not the array"},
};

Status set_replay(const Store& store, Bytes /*limit*/, RecordedPool& pool) {
  set_bfc(store, pool, false);
  return {};
}

constexpr AllocatorSetting kAllocators[] = {
    {"growth", "XLA_PYTHON_CLIENT_PREALLOCATE=false"},
    {"preallocated", "XLA_PYTHON_CLIENT_PREALLOCATE=true, with XLA_PYTHON_CLIENT_MEM_FRACTION"},
    {"async", "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async"},
};

}  // namespace

extern const Framework kFramework;
constinit const Framework kFramework = {
    .id = trace::Framework::jax,
    .word = "jax",
    .name = "JAX",
    .version_settings = kVersionSettings,
    .packages = kPackages,
    .setting_notes = kSettingNotes,
    .meaning_of = meaning_of,
    .rules = kRules,
    .own_facts = own_facts,
    .is_own_name = is_name,
    .recomputed_scope = "rematted_computation",
    .returns_new_variables = true,
    .why_pool_took_card = "JAX takes three quarters of the card when it starts.",
    .regions_double = true,
    .set_replay = set_replay,
    .allocators = kAllocators,
    .remedies = kRemedies,
    .retraces = {"was compiled {} times; each executable stays in memory",
                 "Pad batches to one shape, pass values that change as arrays instead of static arguments, and call jax.jit once "
                 "per function."},
    .findings = findings,
};

}  // namespace vramscope::analyze::jax
