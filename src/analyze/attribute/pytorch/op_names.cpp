#include "analyze/attribute/pytorch/op_names.h"

namespace vramscope::analyze::pytorch {

OpMeaning meaning_of(std::string_view op, std::string_view phase) {
  using trace::Category;
  OpMeaning out;
  const std::size_t slash = op.rfind('/');
  const std::string_view what = slash == std::string_view::npos ? op : op.substr(slash + 1);
  if (slash != std::string_view::npos) out.layer = op.substr(0, slash);
  out.stage = stage_from(phase);
  if (out.stage == Stage::input) {  // a module of the input pipeline, such as a transformation of pictures, is not a layer
    out.category = Category::input;
    out.layer = {};
  }
  if (out.stage == Stage::backward && what == "recomputation") out.category = Category::activation;
  if (out.stage == Stage::optimizer) out.category = Category::temporary;  // its state is reported by address
  // Data parallel training keeps what travels between ranks in buffers of its own.
  if (what == "DDP buckets" || what == "FSDP reduce-scatter") out.category = Category::gradient;
  if (what == "FSDP all-gather") out.category = Category::parameter;
  if (what == "DDP inputs") out.category = Category::input;
  if (out.layer.empty()) {  // outside of all layers: what the program was doing
    if (what == "DDP buckets" || what == "DDP broadcast") out.layer = "(DDP)";
    if (what == "DDP inputs") out.layer = kInputGroup;
    if (what.starts_with("FSDP")) out.layer = "(FSDP)";
    if (out.layer.empty() && out.stage == Stage::input) out.layer = kInputGroup;
    if (out.layer.empty() && out.stage == Stage::optimizer) out.layer = kOptimizerGroup;
  }
  return out;
}

}  // namespace vramscope::analyze::pytorch
