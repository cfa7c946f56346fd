// Answers as JSON, with the names of answers.h. What --json prints and what the server sends are the same.
#pragma once

#include "analyze/answers.h"
#include "support/json_writer.h"

namespace vramscope::analyze {

void write(support::JsonWriter& json, const Overview& answer);
void write(support::JsonWriter& json, const Place& answer);
void write(support::JsonWriter& json, const Step& answer);
void write(support::JsonWriter& json, const Steps& answer);
void write(support::JsonWriter& json, const Phase& answer);
void write(support::JsonWriter& json, const Group& answer);
void write(support::JsonWriter& json, const Block& answer);
void write(support::JsonWriter& json, const Frame& answer);
void write(support::JsonWriter& json, const Stacked& answer);
void write(support::JsonWriter& json, const Live& answer);
void write(support::JsonWriter& json, const Top& answer);
void write(support::JsonWriter& json, const Region& answer);
void write(support::JsonWriter& json, const Hole& answer);
void write(support::JsonWriter& json, const AddressMap& answer);
void write(support::JsonWriter& json, const DiffRow& answer);
void write(support::JsonWriter& json, const Diff& answer);
void write(support::JsonWriter& json, const MemoryEvent& answer);
void write(support::JsonWriter& json, const LedgerLine& answer);
void write(support::JsonWriter& json, const Ledger& answer);
void write(support::JsonWriter& json, const LayerRow& answer);
void write(support::JsonWriter& json, const Layers& answer);
void write(support::JsonWriter& json, const LeakRow& answer);
void write(support::JsonWriter& json, const Leaks& answer);
void write(support::JsonWriter& json, const FragPoint& answer);
void write(support::JsonWriter& json, const Pin& answer);
void write(support::JsonWriter& json, const Grown& answer);
void write(support::JsonWriter& json, const Fragmentation& answer);
void write(support::JsonWriter& json, const OomCause& answer);
void write(support::JsonWriter& json, const OomEvent& answer);
void write(support::JsonWriter& json, const Ooms& answer);
void write(support::JsonWriter& json, const Finding& answer);
void write(support::JsonWriter& json, const Findings& answer);
void write(support::JsonWriter& json, const Sample& answer);
void write(support::JsonWriter& json, const Mark& answer);
void write(support::JsonWriter& json, const Completion& answer);
void write(support::JsonWriter& json, const CompareRow& answer);
void write(support::JsonWriter& json, const CompareSide& answer);
void write(support::JsonWriter& json, const Compare& answer);
void write(support::JsonWriter& json, const Violation& answer);
void write(support::JsonWriter& json, const Check& answer);

template <typename Answer>
std::string to_json(const Answer& answer, bool pretty = true) {
  support::JsonWriter json(pretty);
  write(json, answer);
  return json.text();
}

}  // namespace vramscope::analyze
