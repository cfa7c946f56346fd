// What the analysis knows about a framework: one registration, `kFramework`, in attribute/<framework>/framework.cpp. The build
// lists the folders that have one (cmake/frameworks.cmake); all other code uses that list and names no framework.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/answers.h"
#include "analyze/attribute/op_names.h"
#include "analyze/attribute/rules.h"
#include "analyze/attribute/scopes.h"
#include "analyze/index/scan.h"
#include "analyze/verdict/remedies.h"
#include "support/result.h"

namespace vramscope::analyze {

// Finds out what only the rules of one framework need: BlockFacts::own. Created once per trace.
class OwnFacts {
 public:
  OwnFacts() = default;
  OwnFacts(const OwnFacts&) = delete;
  OwnFacts& operator=(const OwnFacts&) = delete;
  virtual ~OwnFacts() = default;
  // What all blocks of a kind have in common, and what is true of one block, which was born in `thread`. Both add bits.
  virtual void of_kind(const Kind& /*kind*/, BlockFacts& /*facts*/) const {}
  virtual void of_block(const Kind& /*kind*/, std::uint64_t /*alloc*/, std::uint32_t /*thread*/, BlockFacts& /*facts*/) const {}
};

// A Python package as `vramscope doctor` looks for it.
struct Package {
  std::string_view module;                          // as it is imported
  std::span<const std::string_view> distributions;  // as it is installed; the first one found has the version
  std::string_view name;                            // for people
  std::string_view remark = {};                     // shown after the version

  // For a package whose allocator is recorded; otherwise empty.
  std::string_view library = {};                         // path in the package's folder, up to where file names start to differ
  std::string_view symbols = {};                         // common prefix of the hooks' names
  std::span<const std::string_view> needs = {};          // parts of names: without a hook for each, nothing is recorded
  std::span<const std::string_view> orders_events = {};  // without a hook for any of these, the order is only approximate
  std::string_view tested = {};                          // versions that are known to work
  std::string_view host_pool_variable = {};              // if this variable is 1, such a pool exists without a GPU too
};

struct RecordedPool;

// A model of an allocator (whatif/candidates.cpp) that the framework has too.
struct AllocatorSetting {
  std::string_view model;
  std::string_view setting;  // how to choose it
  bool offered = true;       // without being asked for
};

// A note in the summary of a recording that has a setting with this value.
struct SettingNote {
  std::string_view key, value, text;
};

// How a program's own arrays become tensors, and what to say of those that stay.
struct ArrayConversion {
  struct Advice {
    std::string_view cause, remedy;
  };
  std::string_view function = {};  // the innermost one on the stack of every tensor that is made of an array
  Advice on_device = {}, on_host = {};
};

// What happens to a function that is called with new kinds of arguments, "{}" times, and what to do about it.
struct Retraces {
  std::string_view what, remedy;
};

struct Framework {
  trace::Framework id;    // its number in traces, as in its registration in capture/
  std::string_view word;  // "tensorflow": what settings call it
  std::string_view name;  // "TensorFlow": for people
  std::span<const std::string_view> version_settings = {};
  std::span<const Package> packages = {};
  std::span<const SettingNote> setting_notes = {};

  // How its blocks are attributed
  OpMeaning (*meaning_of)(std::string_view op, std::string_view region) = meaning_by_scopes;
  std::span<const Rule> rules = {};  // in addition to those for all frameworks
  std::unique_ptr<OwnFacts> (*own_facts)(const Store&, const Columns&, const Scopes&) = nullptr;
  std::span<const std::string_view> rule_settings = {};  // settings that own_facts looks up: the draft has no others
  std::span<const std::string_view> dtypes = {};         // names, by their numbers in the framework

  // In XLA's plans, which do not say whose program they are for
  bool (*is_own_name)(std::string_view op) = nullptr;  // an op that only this framework names like that, with its stage
  std::string_view recomputed_scope = {};              // in names of ops that the backward pass computes again

  // How it differs from others
  bool groups_by_purpose = false;          // blocks outside of all layers are grouped by purpose: input, loss, optimizer
  bool names_graph_ops = false;            // an op with scopes in its name is always the same op of a graph
  bool variables_share_blocks = false;     // the block that is reported for a variable may belong to something else
  bool reports_backward = false;           // the start of each backward pass is marked
  bool pipeline_has_no_ops = false;        // elements of its input pipeline, on the host, are allocated by no op
  bool steps_begin_by_allocating = false;  // a step begins with the first block after the previous step
  bool returns_new_variables = false;      // a step returns the next values of its variables in other blocks, beside the old ones

  // How its pool takes memory
  std::string_view why_pool_took_card = "The pool keeps what was freed.";
  Bytes (*smallest_region)(Bytes requested) = nullptr;  // for a request that fits no hole; NULL: the request, in steps of 256
  bool regions_double = false;                          // each region is twice as large as the one before, up to the limit
  std::string_view pool_owner = {};          // driver-level owner whose blocks are its pool's, even outside of known regions
  Bytes (*left_free)(Bytes card) = nullptr;  // what a pool without a limit leaves to others, at most; NULL: nothing
  bool reports_limit = false;                // the program's limit for a device is reported, not read from its pools

  // How its pool is replayed
  // Fills in the allocator and the settings of the recording; `limit` is that of the place. NULL: it has no cache.
  Status (*set_replay)(const Store& store, Bytes limit, RecordedPool& pool) = nullptr;
  std::span<const AllocatorSetting> allocators = {};
  std::string_view allocator_variable = {};  // environment variable with settings of the form KEY:VALUE
  // Words in names of ops that use another algorithm if the workspace for one is refused.
  std::span<const std::string_view> ops_with_optional_workspace = {};
  // Words in names of ops whose temporaries are scratch of a library, never the result of the op.
  std::span<const std::string_view> ops_with_scratch = {};
  bool keeps_unfactored_state = false;  // an optimizer with factored state allocates the other one too, and does not use it
  // Ends of names of an optimizer's state that would be there with any optimizer. Apply to all traces: Keras runs on several.
  std::span<const std::string_view> state_of_any_optimizer = {};
  bool adds_to_gradients = false;  // accumulated gradients are the kept ones; otherwise they exist beside all new ones
  // Of the live peak in a forecast, if graphs were traced: their ops run in an order that differs from process to process.
  double order_error_on_host = 0, order_error_on_gpu = 0;

  std::span<const Advice> remedies = {};  // in the framework's own terms, if it has any
  Retraces retraces = {};
  ArrayConversion array_conversion = {};
  std::string_view layout_copies = {};                             // in names of ops that copy a tensor into another layout
  std::vector<Finding> (*findings)(const Store& store) = nullptr;  // faults that only its Python side reports
};

std::span<const Framework* const> frameworks();

// The registration, or an empty one if the framework is not in the list.
const Framework& framework(trace::Framework id);
const Framework& framework_of(const Store& store, const Kind& kind);
// Of an op in one of XLA's plans; an empty one if no framework recognizes the name.
const Framework& framework_of_planned(std::string_view op);
OpMeaning meaning_in_plan(std::string_view op);

// "tensorflow", "cuda", "none": what tables and JSON call it.
std::string_view word_of(trace::Framework id);

// What the settings of a recording say about a framework: its name and a clause.
std::vector<std::pair<std::string_view, std::string>> framework_notes(const Summary& summary);

}  // namespace vramscope::analyze
