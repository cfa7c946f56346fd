#include "cli/show/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "cli/run_folder.h"
#include "cli/show/answer.h"
#include "cli/show/terminal.h"
#include "cli/show/unit.h"
#include "support/units.h"

namespace vramscope::cli {

Result<std::vector<std::uint64_t>> batches_in(const std::string& text) {
  const std::string_view view = text;
  std::vector<std::uint64_t> out;
  for (std::size_t from = 0; from < view.size();) {
    const std::size_t to = std::min(view.find(',', from), view.size());
    std::uint64_t batch = 0;
    const auto [end, error] = std::from_chars(view.data() + from, view.data() + to, batch);
    if (error != std::errc{} || end != view.data() + to || batch == 0)
      return fail(fmt::format("--batches: invalid value \"{}\": expected positive integers such as 8,16", text));
    out.push_back(batch);
    from = to + 1;
  }
  return out;
}

namespace {

Result<analyze::Fit> ask_fit(const std::vector<std::string>& runs, const analyze::FitRequest& request) {
  std::vector<analyze::Engine> engines;
  for (const std::string& run : runs) {
    const auto trace = only_trace_of(run);
    if (!trace) return std::unexpected(trace.error());
    auto engine = analyze::Engine::open(*trace);
    if (!engine) return std::unexpected(engine.error());
    if (engine->places().empty()) return no_event(*trace);
    if (const Status matches = engine->check_matches(request.where, request.place); !matches)
      return std::unexpected(matches.error());
    engines.push_back(std::move(*engine));
  }
  std::vector<const analyze::Engine*> pointers;
  pointers.reserve(engines.size());
  for (const analyze::Engine& engine : engines) pointers.push_back(&engine);
  return analyze::fit(pointers, runs, request);
}

std::string fit_text(const analyze::Fit& answer) {
  std::string out = headline(in_a_sentence(answer.sentence));
  if (answer.cards.size() > 1) {
    Table cards;
    cards.column("CARD", Table::Align::left);
    cards.column("MEMORY, MiB");
    cards.column("FOR THE POOL");
    cards.column(answer.unit == "batch" ? "LARGEST BATCH" : "LARGEST LENGTH");
    for (const analyze::FitCard& card : answer.cards)
      cards.row({printable(card.name, 30), mib(card.memory), mib(card.available),
                 card.largest == 0 ? "–" : support::format_count(card.largest)});
    out += "\n" + cards.text(wants_colour(stdout));
  }
  const Unit unit = Unit::for_all(answer.rows, [](const analyze::FitRow& row) { return row.reserved_high; });
  Table table;
  table.column(answer.unit == "batch" ? "BATCH" : "LENGTH");
  for (const std::string& head :
       {"LIVE, " + unit.name(), std::string("POOL"), std::string("COMPLETES WITH"), std::string("FITS"), std::string("FLUSHES")})
    table.column(head);
  for (const analyze::FitRow& row : answer.rows)
    table.row(
        {support::format_count(row.batch), unit(row.live),
         row.reserved_low == row.reserved_high ? unit(row.reserved_high) : unit(row.reserved_low) + "–" + unit(row.reserved_high),
         row.smallest ? unit(*row.smallest) : "–",
         !row.fits   ? ""
         : *row.fits ? "yes"
                     : "no",
         support::format_count(row.flushes)});
  out += "\n" + table.text(wants_colour(stdout));
  std::string from;
  for (const analyze::FitRun& run : answer.runs)
    from += fmt::format("{}{} ({} {})", from.empty() ? "" : ", ", printable(run.name, 60), answer.unit, run.batch);
  out += fmt::format("\nFrom {}. {} of device memory is outside the pool.\n", from, support::format_size(answer.outside));
  for (const std::string& assumption : answer.assumptions) out += in_a_sentence(assumption) + "\n";
  return out;
}

}  // namespace

void declare_device(Arguments& arguments, analyze::FitRequest& request) {
  arguments.text("--on", request.on, "the device: a size such as 24GiB, or a card such as H100-80GB (default: a table of cards)",
                 "DEVICE");
  arguments.size("--limit", request.limit, "limit of the pool, instead of a device, e.g. 16GiB");
  arguments.size("--outside", request.outside,
                 "device memory held by the context, libraries and other programs, if that is more than was recorded, e.g. 1GiB");
  arguments.count("--batch", request.batch, "also forecast this batch size");
}

Result<int> show_fit(const std::vector<std::string>& runs, const analyze::FitRequest& request, bool json) {
  const auto answer = ask_fit(runs, request);
  if (!answer) return std::unexpected(answer.error());
  fmt::print("{}", json ? analyze::to_json(*answer) + "\n" : fit_text(*answer));
  return 0;
}

}  // namespace vramscope::cli
