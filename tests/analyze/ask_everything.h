// Every question to a trace once. All of them must come back, whatever the trace.
#pragma once

#include <string>

#include "analyze/api.h"
#include "analyze/json.h"

namespace vramscope::test {

// All the answers, one after the other.
inline std::string ask_everything(const analyze::Engine& e) {
  using namespace analyze;
  std::string out;
  const auto add = [&](const auto& answer) { out += to_json(answer) + "\n"; };
  const auto add_if = [&](const auto& answer) { answer ? add(*answer) : void(out += answer.error().message + "\n"); };
  add(e.overview());
  add(e.summary());
  add(e.steps());
  for (const Phase& phase : e.phases()) out += phase.name + "\n";
  out += std::to_string(e.marks(0, 0).size()) + " " + std::to_string(e.samples().size()) + "\n";
  for (const char* at : {"peak", "steady", "end", "start", "step:1", "1s", "oom", "moment:3"}) {
    add_if(e.peak({at, {By::category, By::op}, "", -1, 5}));
    add_if(e.address_map({at, -1, -1, ""}));
    add_if(e.ledger(at));
    add_if(e.layers(at));
  }
  for (std::size_t by = 0; by < kByCount; ++by) {
    StackedRequest request;
    request.by = static_cast<By>(by);
    request.width = 10;
    add_if(e.stacked(request));
  }
  add_if(e.top({}));
  add_if(e.diff({}));
  add_if(e.live({"peak", {By::layer}, "size>1KiB and not age<1ms and category:activations", -1, 5}));
  add_if(e.host());
  add_if(e.leaks());
  add_if(e.fragmentation());
  add(e.ooms());
  add(e.findings());
  for (std::uint64_t id : {0u, 1u, 7u}) add_if(e.allocation(id));
  for (const Completion& each : e.complete("layer:")) out += each.text + "\n";
  return out;
}

}  // namespace vramscope::test
