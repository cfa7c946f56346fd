#include "cli/show/summary_text.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>

#include "analyze/framework.h"
#include "cli/show/answer.h"
#include "cli/show/colour.h"
#include "cli/show/terminal.h"
#include "cli/show/unit.h"
#include "collect/write/losses.h"
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
  if (const auto signal = summary.process.signal)
    return fmt::format("ended by signal {} ({})", *signal, strsignal(static_cast<int>(*signal)));
  if (summary.process.exit_code.value_or(0) != 0) return fmt::format("exit code {}", *summary.process.exit_code);
  return summary.ended ? "" : "did not exit normally, or is still running";
}

std::string pool_table(const Summary& summary, bool colour) {
  Table table;
  table.column("POOL", Table::Align::left);
  table.column("ON", Table::Align::left);
  table.column("FRAMEWORK", Table::Align::left, 5);
  const Unit unit =
      Unit::for_all(summary.pools, [](const PoolSummary& p) { return std::max(p.peak_bytes, p.region_bytes_peak); });
  table.column("ALLOCATIONS", Table::Align::right, 4);
  table.column("PEAK " + unit.name());
  for (const auto& [head, drop] : {std::pair{"REQUESTED", 3}, {"HELD", 0}, {"AT END", 1}, {"LARGEST", 2}, {"OOM", 0}})
    table.column(head, Table::Align::right, drop);
  for (const PoolSummary& pool : summary.pools)
    table.row({printable(pool.name, 32), place(pool.device), pool.framework, format_count(pool.allocs),
               at_least(pool) + unit(pool.peak_bytes), unit(pool.peak_requested_bytes),
               pool.region_bytes_peak > 0 ? unit(pool.region_bytes_peak) : "–", unit(pool.end_bytes),
               unit(pool.largest_alloc_bytes), format_count(pool.ooms)});
  return table.text(colour);
}

// A line of the list below the pools; what a terminal cannot hold continues below the text, not below the name.
std::string fact(std::string_view name, std::string_view text) {
  constexpr std::size_t kIndent = 11;
  return fmt::format("  {:<8} {}", name, std::string_view(paragraph(text, kIndent)).substr(kIndent));
}

std::string driver_lines(const Summary& summary) {
  if (summary.driver.allocs == 0) return {};
  const std::string text = fmt::format("{} allocated directly at the peak, {}", format_size(summary.driver.peak_bytes),
                                       support::format_plural(summary.driver.allocs, "allocation", "allocations"));
  std::string owners;
  if (summary.lost > 0) return fact("driver", text);  // who held what is not known then
  for (const auto& [name, owner] : summary.driver.by_owner)
    owners += fmt::format("{}{} {}", owners.empty() ? ": " : ", ", printable(name), format_size(owner.peak_bytes));
  return fact("driver", text + owners);
}

std::string device_lines(const Summary& summary) {
  std::string out;
  for (const auto& device : summary.device) {
    if (device.samples == 0 && !device.context_bytes) continue;
    std::string text;
    if (device.samples > 0)
      text = fmt::format("at most {} of {} used, {}", format_size(device.peak_used_bytes), format_size(device.total_bytes),
                         device.peak_process_bytes ? format_size(*device.peak_process_bytes) + " by this process"
                                                   : "by which process is unknown");
    if (device.context_bytes)
      text += fmt::format("{}context {}", device.samples > 0 ? "; " : "", format_size(*device.context_bytes));
    out += fact(fmt::format("GPU {}", device.device), text);
  }
  return out;
}

// What ended the program or grows without end is not a matter of saving.
std::string saving(const analyze::Finding& finding) {
  if (finding.at_stake.value_or(0) > 0) return fmt::format("  (saves up to {})", format_size(*finding.at_stake));
  return finding.severity == "signal" ? "" : "  (saving unknown)";
}

std::string loss_text(const std::string& name, std::uint64_t count) {
  for (int kind = 0; kind <= static_cast<int>(trace::LossKind::trace_write); ++kind)
    if (trace::name_of(static_cast<trace::LossKind>(kind)) == name)
      return collect::describe_loss(static_cast<trace::LossKind>(kind), count);
  return fmt::format("{} {}", format_count(count), name);
}

// What the analysis makes of it: steps, categories, findings.
std::string answers(const Summary& summary, bool colour) {
  if (!summary.overview || summary.overview->main_place < 0) return {};
  std::string out = "\n";
  if (!summary.sentence.contains(summary.overview->sentence)) out += paragraph(in_a_sentence(summary.overview->sentence), 2);
  if (const std::string& missing = summary.overview->missing; !missing.empty())
    out += paragraph(fmt::format("The rest of this summary is based on the events that were recorded: {}.", missing), 2);
  out += paragraph(in_a_sentence(summary.steps->sentence), 2);
  std::string parts;
  for (const analyze::Group& g : summary.categories->groups)
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", in_category(g.keys[0]), format_size(g.bytes));
  if (!parts.empty())
    out += paragraph(fmt::format("At {}: {}.", summary.steps->has_steady ? "the steady peak" : "the peak", parts), 2);
  const analyze::Findings& findings = *summary.findings;
  for (std::size_t i = 0; i < findings.findings.size(); ++i) {
    const analyze::Finding& f = findings.findings[i];
    out += fmt::format("\n  {}. {}", i + 1, paragraph(bold(in_a_sentence(f.title), colour) + saving(f), 5).substr(5));
    if (!f.cause.empty()) out += paragraph(in_a_sentence(f.cause), 5);
    if (!f.remedy.empty()) out += paragraph(in_a_sentence(f.remedy), 5);
  }
  if (!findings.also_checked.empty())
    out +=
        "\n" + paragraph(fmt::format("Passed: {}.", in_a_sentence(fmt::format("{}", fmt::join(findings.also_checked, "; ")))), 2);
  return out;
}

}  // namespace

std::string summary_text(const Summary& summary, bool colour) {
  std::string text = paragraph(bold(in_a_sentence(summary.sentence), colour), 0);
  if (const std::string figures = analyze::figures_sentence(summary); !summary.sentence.starts_with(figures))
    text += paragraph(in_a_sentence(figures), 0);
  text += '\n';
  if (!summary.pools.empty()) text += pool_table(summary, colour) + "\n";
  text += driver_lines(summary) + device_lines(summary);
  if (summary.host.samples > 0)
    text += fact(
        "host",
        fmt::format("at most {} resident", format_size(summary.host.peak_rss_bytes)) +
            (summary.host.peak_pinned_bytes == 0 ? "" : fmt::format(", {} pinned", format_size(summary.host.peak_pinned_bytes))));
  const std::string end = ending(summary);
  text += fact("process", fmt::format("{}{}{}{}", summary.process.pid, summary.process.command.empty() ? "" : " ",
                                      printable(summary.process.command, 80), end.empty() ? "" : ", " + end));
  for (const auto& [kind, count] : summary.losses) text += fact("lost", loss_text(kind, count));
  if (summary.thinned_allocs)
    text += fact("thinned", fmt::format("{} allocations and their frees were kept only as totals (--trace-limit)",
                                        format_count(*summary.thinned_allocs)));
  if (summary.cut_stacks)
    text += fact("cut", fmt::format("{} too deep: outer frames were omitted",
                                    *summary.cut_stacks == 1 ? "1 stack is" : format_count(*summary.cut_stacks) + " stacks are"));
  const auto check = std::ranges::find(summary.settings, "vramscope.totals_check", [](const auto& pair) { return pair.first; });
  if (check != summary.settings.end() && check->second != "equal" && summary.lost == 0)
    text += fact("check", fmt::format("events and running totals differ: {}", printable(check->second)));
  if (std::any_of(summary.pools.begin(), summary.pools.end(), [](const PoolSummary& pool) { return !pool.order_exact; }))
    text += fact("≥", "several threads used the pool, and its internal order is unknown: the peak may have been higher");
  for (const auto& [framework, notes] : analyze::framework_notes(summary)) text += fact(framework, notes);
  if (summary.damage) text += fact("damage", *summary.damage);
  return text + answers(summary, colour);
}

}  // namespace vramscope::cli
