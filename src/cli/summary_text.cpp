#include "cli/summary_text.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>

#include "cli/terminal.h"
#include "cli/unit.h"
#include "collect/losses.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

using analyze::PoolSummary;
using analyze::Summary;
using support::format_count;
using support::format_size;

std::string place(std::int64_t device) { return device >= 0 ? fmt::format("GPU {}", device) : "host"; }
std::string at_least(const PoolSummary& pool) { return pool.order_exact ? "" : "≥ "; }

std::string ending(const Summary& summary) {
  if (summary.signal) return fmt::format("ended by signal {} ({})", *summary.signal, strsignal(*summary.signal));
  if (summary.exit_code && *summary.exit_code != 0) return fmt::format("exit code {}", *summary.exit_code);
  return summary.ended ? "" : "did not end by itself, or still runs";
}

std::string pool_table(const Summary& summary, bool colour) {
  Table table;
  table.column("POOL", Table::Align::left);
  table.column("ON", Table::Align::left);
  table.column("FRAMEWORK", Table::Align::left);
  const Unit unit =
      Unit::for_all(summary.pools, [](const PoolSummary& p) { return std::max(p.peak_bytes, p.region_bytes_peak); });
  table.column("ALLOCATIONS");
  table.column("PEAK " + unit.name());
  for (const char* head : {"REQUESTED", "HELD", "AT END", "LARGEST", "OOM"}) table.column(head);
  for (const PoolSummary& pool : summary.pools)
    table.row({printable(pool.name, 32), place(pool.device), std::string(trace::name_of(pool.framework)),
               format_count(pool.allocs), at_least(pool) + unit(pool.peak_bytes), unit(pool.peak_requested_bytes),
               pool.region_bytes_peak > 0 ? unit(pool.region_bytes_peak) : "–", unit(pool.end_bytes),
               unit(pool.largest_alloc_bytes), format_count(pool.ooms)});
  return table.text(colour);
}

std::string driver_lines(const Summary& summary) {
  if (summary.driver.allocs == 0) return {};
  std::string text = fmt::format("  driver   {} taken directly at the peak, {} allocations",
                                 format_size(summary.driver.peak_bytes), format_count(summary.driver.allocs));
  std::string owners;
  if (summary.lost_events > 0) return text + "\n";  // who held what is not known then
  for (const auto& [name, owner] : summary.driver.by_owner)
    owners += fmt::format("{}{} {}", owners.empty() ? ": " : ", ", name.empty() ? "unknown" : printable(name),
                          format_size(owner.peak_bytes));
  return text + owners + "\n";
}

std::string device_lines(const Summary& summary) {
  std::string text;
  for (const auto& device : summary.devices) {
    if (device.samples == 0 && !device.context_bytes) continue;
    text += fmt::format("  GPU {}    ", device.device);
    if (device.samples > 0)
      text += fmt::format("{} of {} used at most, {} by this process", format_size(device.peak_used_bytes),
                          format_size(device.total_bytes),
                          device.peak_process_bytes ? format_size(*device.peak_process_bytes) : "not known how much");
    if (device.context_bytes)
      text += fmt::format("{}context {}", device.samples > 0 ? "; " : "", format_size(*device.context_bytes));
    text += "\n";
  }
  return text;
}

}  // namespace

std::string summary_sentence(const Summary& summary) {
  const PoolSummary* pool = analyze::main_pool(summary);
  std::string text;
  if (pool != nullptr) {
    text = fmt::format("{}{} live at the peak in {}", at_least(*pool), format_size(pool->peak_bytes), printable(pool->name, 40));
    if (pool->region_bytes_peak > 0)
      text += fmt::format(", which holds {}{}", pool->before_bytes > 0 ? "at least " : "", format_size(pool->region_bytes_peak));
    if (pool->ooms > 0) text += fmt::format("; out of memory {}", pool->ooms == 1 ? "once" : fmt::format("{} times", pool->ooms));
  } else if (summary.driver.allocs > 0) {
    text = fmt::format("{} taken from the driver at the peak", format_size(summary.driver.peak_bytes));
  } else {
    text = "No allocation was recorded";
  }
  text += fmt::format("; {} in {}", support::format_plural(summary.events, "event", "events"),
                      support::format_duration(summary.duration_us));
  const char* rest = summary.damage.empty() ? ", none lost." : ", and a part of the trace cannot be read.";
  text += summary.lost_events > 0 ? fmt::format(", {} lost.", format_count(summary.lost_events)) : rest;
  return text;
}

std::string summary_text(const Summary& summary, bool colour) {
  std::string text = bold(summary_sentence(summary), colour) + "\n\n";
  if (!summary.pools.empty()) text += pool_table(summary, colour) + "\n";
  text += driver_lines(summary) + device_lines(summary);
  if (summary.host.samples > 0) {
    text += fmt::format("  host     {} resident at most", format_size(summary.host.peak_rss_bytes));
    if (summary.host.peak_pinned_bytes > 0) text += fmt::format(", {} pinned", format_size(summary.host.peak_pinned_bytes));
    text += "\n";
  }
  const std::string end = ending(summary);
  text += fmt::format("  process  {} {}{}\n", summary.pid, printable(summary.command, 80), end.empty() ? "" : ", " + end);
  for (const auto& [kind, count] : summary.lost) text += fmt::format("  lost     {}\n", collect::describe_loss(kind, count));
  if (summary.thinned_allocs > 0)
    text += fmt::format("  thinned  {} allocations and their frees are kept as totals only (--trace-limit)\n",
                        format_count(summary.thinned_allocs));
  if (summary.cut_stacks > 0)
    text += fmt::format("  cut      {} too deep: the outer frames are left out\n",
                        summary.cut_stacks == 1 ? "1 stack is" : format_count(summary.cut_stacks) + " stacks are");
  const auto check = summary.settings.find("vramscope.totals_check");
  if (check != summary.settings.end() && check->second != "equal" && summary.lost_events == 0)
    text += fmt::format("  check    events and running totals differ: {}\n", printable(check->second));
  if (std::any_of(summary.pools.begin(), summary.pools.end(), [](const PoolSummary& pool) { return !pool.order_exact; }))
    text += "  ≥        several threads used the pool and its own order is not known: the peak may have been higher\n";
  if (!summary.damage.empty()) text += fmt::format("  damage   {}\n", summary.damage);
  return text;
}

void summary_json(const Summary& summary, support::JsonWriter& json, const std::function<void()>& more) {
  json.begin_object().member("file", summary.file);
  json.key("process").begin_object().member("pid", summary.pid).member("command", summary.command);
  if (summary.exit_code) json.member("exit_code", *summary.exit_code);
  if (summary.signal) json.member("signal", *summary.signal);
  json.end_object().member("duration_s", static_cast<double>(summary.duration_us) / 1e6).member("events", summary.events);
  json.member("lost", summary.lost_events).key("losses").begin_object();
  for (const auto& [kind, count] : summary.lost) json.member(trace::name_of(kind), count);
  json.end_object();
  if (summary.cut_stacks > 0) json.member("cut_stacks", summary.cut_stacks);
  json.key("pools").begin_array();
  for (const PoolSummary& pool : summary.pools) {
    json.begin_object()
        .member("name", pool.name)
        .member("device", pool.device)
        .member("framework", trace::name_of(pool.framework));
    json.member("memory", trace::name_of(pool.memory)).member("allocs", pool.allocs).member("frees", pool.frees);
    json.member("peak_bytes", pool.peak_bytes).member("peak_requested_bytes", pool.peak_requested_bytes);
    json.member("end_bytes", pool.end_bytes).member("largest_alloc_bytes", pool.largest_alloc_bytes);
    json.member("region_bytes_peak", pool.region_bytes_peak).member("region_bytes_end", pool.region_bytes_end);
    json.member("ooms", pool.ooms).member("refusals", pool.refusals).member("before_bytes", pool.before_bytes);
    json.member("order_exact", pool.order_exact).end_object();
  }
  json.end_array().key("driver").begin_object().member("allocs", summary.driver.allocs).member("frees", summary.driver.frees);
  json.member("peak_bytes", summary.driver.peak_bytes)
      .member("end_bytes", summary.driver.live_bytes)
      .key("by_owner")
      .begin_object();
  for (const auto& [name, owner] : summary.driver.by_owner) {
    json.key(name.empty() ? "unknown" : name).begin_object().member("allocs", owner.allocs);
    json.member("peak_bytes", owner.peak_bytes).member("end_bytes", owner.live_bytes).end_object();
  }
  json.end_object().end_object().key("device").begin_array();
  for (const auto& device : summary.devices) {
    json.begin_object()
        .member("device", device.device)
        .member("samples", device.samples)
        .member("total_bytes", device.total_bytes);
    json.member("peak_used_bytes", device.peak_used_bytes).key("peak_process_bytes");
    device.peak_process_bytes ? json.value(*device.peak_process_bytes) : json.null();
    json.key("context_bytes");
    device.context_bytes ? json.value(*device.context_bytes) : json.null();
    json.end_object();
  }
  json.end_array().key("host").begin_object().member("samples", summary.host.samples);
  json.member("peak_rss_bytes", summary.host.peak_rss_bytes)
      .member("peak_pinned_bytes", summary.host.peak_pinned_bytes)
      .end_object();
  json.key("settings").begin_object();
  for (const auto& [key, value] : summary.settings) json.member(key, value);
  json.end_object().member("ended", summary.ended);
  if (summary.thinned_allocs > 0) json.member("thinned_allocs", summary.thinned_allocs);
  if (!summary.damage.empty()) json.member("damage", summary.damage);
  if (more) more();
  json.end_object();
}

}  // namespace vramscope::cli
