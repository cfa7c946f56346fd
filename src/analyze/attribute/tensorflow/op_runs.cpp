#include "analyze/attribute/tensorflow/op_runs.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <vector>

#include "analyze/framework.h"

namespace vramscope::analyze::tensorflow {
namespace {

// What a thread is running, and the scratch that it requested for that.
struct Run {
  trace::StringId op{};
  std::vector<std::uint64_t> scratch;
};

bool of_tensorflow(const Store& draft, const Kind& kind) { return framework_of(draft, kind).id == trace::Framework::tensorflow; }

}  // namespace

bool is_eager_op(std::string_view op) { return !op.empty() && !op.contains('/'); }

OpRuns::OpRuns(const Store& draft, const Columns& columns) {
  std::vector<bool> is_named(draft.kinds.size()), is_scratch(draft.kinds.size());
  for (std::size_t k = 0; k < draft.kinds.size(); ++k) {
    const trace::Site& site = draft.site_of(draft.kinds[k]);
    is_named[k] = of_tensorflow(draft, draft.kinds[k]) && static_cast<std::uint32_t>(site.op) != 0;
    is_scratch[k] = is_named[k] && is_eager_op(draft.text(site.op)) && draft.text(site.region) == "temp";
  }
  if (std::ranges::find(is_scratch, true) == is_scratch.end()) return;
  tsl::robin_map<std::uint32_t, Run> threads;
  for (std::uint64_t pos = 0; pos < columns.ref.size(); ++pos) {
    const std::uint32_t ref = columns.ref[pos];
    if (ref == kNone32 || (ref & 1) != 0) continue;
    const std::uint32_t alloc = ref >> 1, kind = draft.kind[alloc];
    if (kind >= is_named.size() || !is_named[kind]) continue;
    Run& run = threads[columns.attributes[alloc]];
    if (const trace::StringId now = draft.site_of(draft.kinds[kind]).op; now != run.op) {
      run.op = now;
      for (const std::uint64_t block : run.scratch)
        if (columns.death[block] > pos) outlived_.insert(block);
      run.scratch.clear();
    }
    if (is_scratch[kind]) run.scratch.push_back(alloc);
  }
}

}  // namespace vramscope::analyze::tensorflow
