// Written field by field: the names in the JSON are a contract (docs/guide/json.md).
#include "analyze/json.h"

#include "analyze/api.h"
#include "analyze/json_values.h"

namespace vramscope::analyze {

void write(support::JsonWriter& json, const Overview& answer) {
  Object object(json);
  object.member("sentence", answer.sentence);
  object.member("path", answer.path);
  object.member("program", answer.program);
  object.member("start_realtime_us", answer.start_realtime_us);
  object.member("duration_us", answer.duration_us);
  object.member("events", answer.events);
  object.member("allocs", answer.allocs);
  object.member("frees", answer.frees);
  object.member("unmatched_frees", answer.unmatched_frees);
  object.member("damage", answer.damage);
  object.member("truncated", answer.truncated);
  object.member("lost", answer.lost);
  object.member("missing", answer.missing);
  object.member("settings", answer.settings);
  object.member("places", answer.places);
  object.member("main_place", answer.main_place);
  object.member("steps_source", answer.steps_source);
  object.member("steps", answer.steps);
  object.member("checked", answer.checked);
  object.member("ooms", answer.ooms);
}

void write(support::JsonWriter& json, const Place& answer) {
  Object object(json);
  object.member("name", answer.name);
  object.member("device", answer.device);
  object.member("driver", answer.driver);
  object.member("pools", answer.pools);
  object.member("allocs", answer.allocs);
  object.member("peak", answer.peak);
  object.member("peak_at", answer.peak_at);
  object.member("steady_peak", answer.steady_peak);
  object.member("steady_peak_at", answer.steady_peak_at);
  object.member("end", answer.end);
  object.member("regions_peak", answer.regions_peak);
  object.member("regions_end", answer.regions_end);
  object.member("limit", answer.limit);
  object.member("order_exact", answer.order_exact);
  object.member("steady", answer.steady);
}

void write(support::JsonWriter& json, const Step& answer) {
  Object object(json);
  object.member("number", answer.number);
  object.member("kind", answer.kind);
  object.member("batches", answer.batches);
  object.member("epoch", answer.epoch);
  object.member("begin", answer.begin);
  object.member("end", answer.end);
  object.member("begin_us", answer.begin_us);
  object.member("end_us", answer.end_us);
  object.member("warmup", answer.warmup);
  object.member("outlier", answer.outlier);
  object.member("why", answer.why);
  object.member("peak", answer.peak);
  object.member("peak_at", answer.peak_at);
  object.member("before", answer.before);
  object.member("after", answer.after);
  object.member("growth", answer.growth);
  object.member("allocated", answer.allocated);
  object.member("freed", answer.freed);
  object.member("allocs", answer.allocs);
  object.member("frees", answer.frees);
  object.member("churn", answer.churn);
  object.member("forward_peak", answer.forward_peak);
  object.member("backward_peak", answer.backward_peak);
  object.member("optimizer_peak", answer.optimizer_peak);
  object.member("before_optimizer", answer.before_optimizer);
  object.member("after_optimizer", answer.after_optimizer);
}

void write(support::JsonWriter& json, const Steps& answer) {
  Object object(json);
  object.member("sentence", answer.sentence);
  object.member("source", answer.source);
  object.member("why", answer.why);
  object.member("steady_first", answer.steady_first);
  object.member("steady_last", answer.steady_last);
  object.member("has_steady", answer.has_steady);
  object.member("steps", answer.steps);
}

void write(support::JsonWriter& json, const Phase& answer) {
  Object object(json);
  object.member("name", answer.name);
  object.member("begin", answer.begin);
  object.member("end", answer.end);
  object.member("begin_us", answer.begin_us);
  object.member("end_us", answer.end_us);
  object.member("peak", answer.peak);
  object.member("peak_at", answer.peak_at);
  object.member("growth_kept", answer.growth_kept);
  object.member("allocated", answer.allocated);
  object.member("allocs", answer.allocs);
  object.member("host_peak", answer.host_peak);
}

void write(support::JsonWriter& json, const Group& answer) {
  Object object(json);
  object.member("keys", answer.keys);
  object.member("bytes", answer.bytes);
  object.member("requested", answer.requested);
  object.member("count", answer.count);
  object.member("oldest_us", answer.oldest_us);
  object.member("newest_us", answer.newest_us);
  object.member("example", answer.example);
}

void write(support::JsonWriter& json, const Block& answer) {
  Object object(json);
  object.member("id", answer.id);
  object.member("address", answer.address);
  object.member("requested", answer.requested);
  object.member("granted", answer.granted);
  object.member("birth", answer.birth);
  object.member("death", answer.death);
  object.member("birth_us", answer.birth_us);
  object.member("death_us", answer.death_us);
  object.member("pool", answer.pool);
  object.member("pool_name", answer.pool_name);
  object.member("category", answer.category);
  object.member("known", answer.known);
  object.member("layer", answer.layer);
  object.member("op", answer.op);
  object.member("region", answer.region);
  object.member("dtype", answer.dtype);
  object.member("shape", answer.shape);
  object.member("phase", answer.phase);
  object.member("line", answer.line);
  object.member("name", answer.name);
  object.member("owner", answer.owner);
  object.member("stream", answer.stream);
  object.member("step", answer.step);
  object.member("stack", answer.stack);
}

void write(support::JsonWriter& json, const Frame& answer) {
  Object object(json);
  object.member("function", answer.function);
  object.member("file", answer.file);
  object.member("line", answer.line);
  object.member("offset", answer.offset);
}

void write(support::JsonWriter& json, const Stacked& answer) {
  Object object(json);
  object.member("groups", answer.groups);
  object.member("time_us", answer.time_us);
  object.member("at", answer.at);
  object.member("border_us", answer.border_us);
  object.member("low", answer.low);
  object.member("high", answer.high);
  object.member("peak", answer.peak);
  object.member("events", answer.events);
  object.member("exact_borders", answer.exact_borders);
}

void write(support::JsonWriter& json, const Live& answer) {
  Object object(json);
  object.member("at", answer.at);
  object.member("time_us", answer.time_us);
  object.member("step", answer.step);
  object.member("phase", answer.phase);
  object.member("total", answer.total);
  object.member("requested", answer.requested);
  object.member("count", answer.count);
  object.member("groups", answer.groups);
  object.member("blocks", answer.blocks);
  object.member("rest_bytes", answer.rest_bytes);
  object.member("rest_count", answer.rest_count);
  object.member("rest_groups", answer.rest_groups);
}

void write(support::JsonWriter& json, const Top& answer) {
  Object object(json);
  object.member("total", answer.total);
  object.member("count", answer.count);
  object.member("groups", answer.groups);
  object.member("rest_bytes", answer.rest_bytes);
  object.member("rest_groups", answer.rest_groups);
}

void write(support::JsonWriter& json, const Region& answer) {
  Object object(json);
  object.member("pool", answer.pool);
  object.member("address", answer.address);
  object.member("bytes", answer.bytes);
  object.member("live", answer.live);
  object.member("largest_hole", answer.largest_hole);
  object.member("since_us", answer.since_us);
  object.member("empty_since_us", answer.empty_since_us);
  object.member("empty_since_step", answer.empty_since_step);
}

void write(support::JsonWriter& json, const Hole& answer) {
  Object object(json);
  object.member("pool", answer.pool);
  object.member("region", answer.region);
  object.member("address", answer.address);
  object.member("bytes", answer.bytes);
  object.member("before", answer.before);
  object.member("after", answer.after);
}

void write(support::JsonWriter& json, const AddressMap& answer) {
  Object object(json);
  object.member("at", answer.at);
  object.member("time_us", answer.time_us);
  object.member("pool_bytes", answer.pool_bytes);
  object.member("live", answer.live);
  object.member("free", answer.free);
  object.member("largest_hole", answer.largest_hole);
  object.member("regions", answer.regions);
  object.member("blocks", answer.blocks);
  object.member("holes", answer.holes);
  object.member("labels", answer.labels);
  object.member("outside", answer.outside);
}

void write(support::JsonWriter& json, const DiffRow& answer) {
  Object object(json);
  object.member("key", answer.key);
  object.member("a", answer.a);
  object.member("b", answer.b);
  object.member("change", answer.change);
}

void write(support::JsonWriter& json, const Diff& answer) {
  Object object(json);
  object.member("a", answer.a);
  object.member("b", answer.b);
  object.member("total_a", answer.total_a);
  object.member("total_b", answer.total_b);
  object.member("came", answer.came);
  object.member("went", answer.went);
  object.member("rows", answer.rows);
}

void write(support::JsonWriter& json, const MemoryEvent& answer) {
  Object object(json);
  object.member("at", answer.at);
  object.member("time_us", answer.time_us);
  object.member("is_free", answer.is_free);
  object.member("block", answer.block);
}

void write(support::JsonWriter& json, const LedgerLine& answer) {
  Object object(json);
  object.member("name", answer.name);
  object.member("bytes", answer.bytes);
  object.member("parts", answer.parts);
  object.member("residual", answer.residual);
  object.member("note", answer.note);
}

void write(support::JsonWriter& json, const Ledger& answer) {
  Object object(json);
  object.member("sentence", answer.sentence);
  object.member("at", answer.at);
  object.member("time_us", answer.time_us);
  object.member("step", answer.step);
  object.member("place", answer.place);
  object.member("card", answer.card);
  object.member("lines", answer.lines);
  object.member("host", answer.host);
  object.member("advice", answer.advice);
}

void write(support::JsonWriter& json, const LayerRow& answer) {
  Object object(json);
  object.member("name", answer.name);
  object.member("parameters", answer.parameters);
  object.member("gradients", answer.gradients);
  object.member("optimizer_state", answer.optimizer_state);
  object.member("activations", answer.activations);
  object.member("temporaries", answer.temporaries);
  object.member("inputs", answer.inputs);
  object.member("other", answer.other);
  object.member("total", answer.total);
  object.member("own_peak", answer.own_peak);
  object.member("own_peak_at", answer.own_peak_at);
  object.member("line", answer.line);
}

void write(support::JsonWriter& json, const Layers& answer) {
  Object object(json);
  object.member("sentence", answer.sentence);
  object.member("at", answer.at);
  object.member("layers", answer.layers);
  object.member("rows", answer.rows);
}

void write(support::JsonWriter& json, const LeakRow& answer) {
  Object object(json);
  object.member("category", answer.category);
  object.member("layer", answer.layer);
  object.member("op", answer.op);
  object.member("line", answer.line);
  object.member("shape", answer.shape);
  object.member("block_bytes", answer.block_bytes);
  object.member("bytes_per_step", answer.bytes_per_step);
  object.member("low", answer.low);
  object.member("high", answer.high);
  object.member("since_step", answer.since_step);
  object.member("blocks", answer.blocks);
  object.member("so_far", answer.so_far);
  object.member("replaced", answer.replaced);
  object.member("examples", answer.examples);
}

void write(support::JsonWriter& json, const Leaks& answer) {
  Object object(json);
  object.member("verdict", answer.verdict);
  object.member("sentence", answer.sentence);
  object.member("why", answer.why);
  object.member("bytes_per_step", answer.bytes_per_step);
  object.member("low", answer.low);
  object.member("high", answer.high);
  object.member("confidence", answer.confidence);
  object.member("since_step", answer.since_step);
  object.member("so_far", answer.so_far);
  object.member("steps_to_full", answer.steps_to_full);
  object.member("saturates", answer.saturates);
  object.member("step_number", answer.step_number);
  object.member("left_after", answer.left_after);
  object.member("rows", answer.rows);
  object.member("advice", answer.advice);
}

void write(support::JsonWriter& json, const FragPoint& answer) {
  Object object(json);
  object.member("at", answer.at);
  object.member("time_us", answer.time_us);
  object.member("step", answer.step);
  object.member("pool", answer.pool);
  object.member("live", answer.live);
  object.member("requested", answer.requested);
  object.member("cached", answer.cached);
  object.member("largest_free", answer.largest_free);
  object.member("request", answer.request);
  object.member("unusable", answer.unusable);
}

void write(support::JsonWriter& json, const Pin& answer) {
  Object object(json);
  object.member("block", answer.block);
  object.member("frees", answer.frees);
  object.member("largest_after", answer.largest_after);
}

void write(support::JsonWriter& json, const Grown& answer) {
  Object object(json);
  object.member("at", answer.at);
  object.member("time_us", answer.time_us);
  object.member("step", answer.step);
  object.member("request", answer.request);
  object.member("free", answer.free);
  object.member("largest_hole", answer.largest_hole);
  object.member("grew_by", answer.grew_by);
  object.member("holes", answer.holes);
  object.member("op", answer.op);
  object.member("layer", answer.layer);
}

void write(support::JsonWriter& json, const Fragmentation& answer) {
  Object object(json);
  object.member("sentence", answer.sentence);
  object.member("points", answer.points);
  object.member("worst", answer.worst);
  object.member("slack", answer.slack);
  object.member("rounding", answer.rounding);
  object.member("pins", answer.pins);
  object.member("grown", answer.grown);
  object.member("empty", answer.empty);
  object.member("advice", answer.advice);
}

void write(support::JsonWriter& json, const OomCause& answer) {
  Object object(json);
  object.member("cause", answer.cause);
  object.member("holds", answer.holds);
  object.member("would_fit", answer.would_fit);
  object.member("bytes", answer.bytes);
  object.member("evidence", answer.evidence);
}

void write(support::JsonWriter& json, const OomEvent& answer) {
  Object object(json);
  object.member("at", answer.at);
  object.member("time_us", answer.time_us);
  object.member("step", answer.step);
  object.member("final", answer.final);
  object.member("requested", answer.requested);
  object.member("live", answer.live);
  object.member("regions", answer.regions);
  object.member("free", answer.free);
  object.member("largest_free", answer.largest_free);
  object.member("limit", answer.limit);
  object.member("short_by", answer.short_by);
  object.member("op", answer.op);
  object.member("layer", answer.layer);
  object.member("line", answer.line);
  object.member("pool", answer.pool);
  object.member("verdict", answer.verdict);
  object.member("sentence", answer.sentence);
  object.member("causes", answer.causes);
  object.member("live_set", answer.live_set);
}

void write(support::JsonWriter& json, const Ooms& answer) {
  Object object(json);
  object.member("sentence", answer.sentence);
  object.member("events", answer.events);
  object.member("optional_refusals", answer.optional_refusals);
  object.member("advice", answer.advice);
}

void write(support::JsonWriter& json, const Finding& answer) {
  Object object(json);
  object.member("id", answer.id);
  object.member("title", answer.title);
  object.member("cause", answer.cause);
  object.member("remedy", answer.remedy);
  object.member("at_stake", answer.at_stake);
  object.member("view", answer.view);
  object.member("at", answer.at);
  object.member("where", answer.where);
}

void write(support::JsonWriter& json, const Findings& answer) {
  Object object(json);
  object.member("findings", answer.findings);
  object.member("also_checked", answer.also_checked);
}

void write(support::JsonWriter& json, const Sample& answer) {
  Object object(json);
  object.member("time_us", answer.time_us);
  object.member("device", answer.device);
  object.member("used", answer.used);
  object.member("total", answer.total);
  object.member("process", answer.process);
  object.member("other", answer.other);
}

void write(support::JsonWriter& json, const Mark& answer) {
  Object object(json);
  object.member("kind", answer.kind);
  object.member("name", answer.name);
  object.member("detail", answer.detail);
  object.member("number", answer.number);
  object.member("begin_us", answer.begin_us);
  object.member("end_us", answer.end_us);
  object.member("begin", answer.begin);
  object.member("end", answer.end);
}

void write(support::JsonWriter& json, const Completion& answer) {
  Object object(json);
  object.member("text", answer.text);
  object.member("bytes", answer.bytes);
}

void write(support::JsonWriter& json, const CompareRow& answer) {
  Object object(json);
  object.member("key", answer.key);
  object.member("bytes", answer.bytes);
  object.member("change", answer.change);
}

void write(support::JsonWriter& json, const CompareSide& answer) {
  Object object(json);
  object.member("name", answer.name);
  object.member("peak", answer.peak);
  object.member("steady_peak", answer.steady_peak);
  object.member("left_after", answer.left_after);
  object.member("regions", answer.regions);
  object.member("steps", answer.steps);
  object.member("allocs_per_step", answer.allocs_per_step);
}

void write(support::JsonWriter& json, const Compare& answer) {
  Object object(json);
  object.member("sentence", answer.sentence);
  object.member("basis", answer.basis);
  object.member("sides", answer.sides);
  object.member("categories", answer.categories);
  object.member("layers", answer.layers);
  object.member("ops", answer.ops);
  object.member("dtypes", answer.dtypes);
  object.member("same_place", answer.same_place);
  object.member("same_place_at", answer.same_place_at);
  object.member("settings", answer.settings);
}

void write(support::JsonWriter& json, const Violation& answer) {
  Object object(json);
  object.member("line", answer.line);
  object.member("rule", answer.rule);
  object.member("message", answer.message);
  object.member("limit", answer.limit);
  object.member("value", answer.value);
}

void write(support::JsonWriter& json, const Check& answer) {
  Object object(json);
  object.member("sentence", answer.sentence);
  object.member("rules", answer.rules);
  object.member("violations", answer.violations);
  object.member("passed", answer.passed);
}

}  // namespace vramscope::analyze
