#include "analyze/attribute/tensorflow/pipeline_threads.h"

#include <algorithm>
#include <string_view>

#include "analyze/attribute/op_names.h"
#include "analyze/framework.h"

namespace vramscope::analyze::tensorflow {

bool is_unnamed(const Store& draft, const Kind& kind, bool on_device) {
  if (framework_of(draft, kind).id != trace::Framework::tensorflow) return false;
  return (draft.dictionaries().pools[kind.pool].device >= 0) == on_device &&
         static_cast<std::uint32_t>(draft.site_of(kind).op) == 0;
}

namespace {

// What the functions of a pipeline call their ops. The model may have ops of these names too ("concat", "Cast"): such a name says
// nothing about the thread that runs it.
tsl::robin_set<std::string_view> ops_of_pipelines(const trace::Dictionaries& dictionaries) {
  tsl::robin_set<std::string_view> out;
  for (const trace::OpSource& source : dictionaries.op_sources)
    if (text_of(dictionaries, source.layer) == kInputGroup) out.insert(text_of(dictionaries, source.op));
  return out;
}

}  // namespace

PipelineThreads::PipelineThreads(const Store& draft, const Columns& columns) : draft_(draft) {
  if (std::ranges::none_of(draft.kinds, [&](const Kind& kind) { return is_unnamed(draft, kind, false); })) return;
  const auto own_ops = ops_of_pipelines(draft.dictionaries());
  std::uint32_t settled = kNone32;  // the last thread that is known to run named ops: most blocks come from one
  for (std::size_t i = 0; i < columns.birth.size(); ++i) {
    std::uint32_t thread = columns.attributes[i];
    if (thread == settled || columns.birth[i] == kNone32 || named_.contains(thread)) continue;
    const Kind& kind = draft.kind_of(i);
    if (own_ops.contains(text_of(draft.dictionaries(), draft.site_of(kind).op))) continue;
    if (is_unnamed(draft, kind, false)) {
      unnamed_.insert(thread);
    } else {
      named_.insert(settled = thread);
      unnamed_.erase(thread);
    }
  }
  for (const auto& mark : draft.marks) unnamed_.erase(mark.thread);
}

}  // namespace vramscope::analyze::tensorflow
