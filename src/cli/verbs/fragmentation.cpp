#include <fmt/format.h>

#include "cli/show/answer.h"
#include "cli/show/terminal.h"
#include "cli/show/unit.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

class FragmentationVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override { options_.declare(arguments); }

  Result<int> run() override {
    return answer_each(options_, [&](const analyze::Engine& engine, int place) -> Result<Answer> {
      auto frag = engine.fragmentation(place, options_.where);
      if (!frag) return std::unexpected(frag.error());
      return Answer{text(*frag), analyze::to_json(*frag)};
    });
  }

 private:
  std::size_t most(std::size_t n) const { return options_.rows == 0 ? n : std::min<std::size_t>(options_.rows, n); }

  std::string text(const analyze::Fragmentation& f) const {
    std::string out = headline(f.sentence);
    if (f.points.empty()) return out;
    const bool colour = wants_colour(stdout);
    out += history(f, colour);
    out += "\n" + paragraph(fmt::format("Worst at {}: {} of slack inside blocks, {} of it rounding to 256 bytes.",
                                        support::format_duration(f.worst.time_us), support::format_size(f.slack),
                                        support::format_size(f.rounding)),
                            2);
    if (!f.grown.empty()) out += "\n" + dim("  Pool growth although enough was free", colour) + "\n" + growth(f).text(colour);
    if (!f.pins.empty()) out += "\n" + in_the_way(f).text(colour);
    if (!f.empty.empty()) out += "\n" + empty_regions(f).text(colour);
    return out + to_do(f.advice);
  }

  std::string history(const analyze::Fragmentation& f, bool colour) const {
    Table table;
    const Unit unit = Unit::for_all(f.points, [](const analyze::FragPoint& p) { return p.live; });
    for (const auto& [head, drop] : {std::pair{"AT", 0},
                                     {"STEP", 0},
                                     {"POOL", 0},
                                     {"LIVE", 0},
                                     {"CACHED", 1},
                                     {"LARGEST FREE", 0},
                                     {"REQUEST", 0},
                                     {"UNUSABLE", 0},
                                     {"SLACK", 2}})
      table.column(head, Table::Align::right, drop);
    const std::size_t every = std::max<std::size_t>(1, f.points.size() / most(f.points.size()));
    for (std::size_t i = 0; i < f.points.size(); i += every) {
      const analyze::FragPoint& p = f.points[i];
      table.row({support::format_duration(p.time_us), p.step > 0 ? std::to_string(p.step) : "–", unit(p.pool), unit(p.live),
                 unit(p.cached), unit(p.largest_free), unit(p.request), unit(p.unusable), unit(p.live - p.requested)});
    }
    return "\n" + dim(fmt::format("  {}; unusable: in holes smaller than the largest recent request", unit.name()), colour) +
           "\n" + table.text(colour);
  }

  Table growth(const analyze::Fragmentation& f) const {
    Table grown;
    for (const char* head : {"AT", "STEP", "REQUEST", "FREE", "LARGEST HOLE", "HOLES", "GREW BY"}) grown.column(head);
    grown.column("FOR", Table::Align::left);
    for (std::size_t i = 0; i < most(f.grown.size()); ++i) {
      const analyze::Grown& g = f.grown[i];
      grown.row({support::format_duration(g.time_us), g.step > 0 ? std::to_string(g.step) : "–", mib(g.request), mib(g.free),
                 mib(g.largest_hole), std::to_string(g.holes), mib(g.grew_by), dash(short_op(g.op))});
    }
    return grown;
  }

  Table in_the_way(const analyze::Fragmentation& f) const {
    Table pins;
    for (const auto& [head, drop] : {std::pair{"IN THE WAY", 0}, {"LAYER", 1}, {"LINE", 0}})
      pins.column(head, Table::Align::left, drop);
    for (const auto& [head, drop] : {std::pair{"ADDRESS", 3}, {"AGE", 2}, {"SIZE", 0}, {"KEEPS APART", 0}})
      pins.column(head, Table::Align::right, drop);
    const std::uint64_t now = f.worst.time_us;
    for (std::size_t i = 0; i < most(f.pins.size()); ++i) {
      const analyze::Pin& p = f.pins[i];
      pins.row({dash(short_op(p.block.op)), dash(p.block.layer), dash(p.block.line), fmt::format("0x{:x}", p.block.address),
                age(now - std::min(now, p.block.birth_us)), support::format_size(p.block.granted),
                support::format_size(p.frees)});
    }
    return pins;
  }

  Table empty_regions(const analyze::Fragmentation& f) const {
    Table empty;
    empty.column("EMPTY REGION", Table::Align::left);
    empty.column("MiB");
    empty.column("SINCE", Table::Align::left);
    for (std::size_t i = 0; i < most(f.empty.size()); ++i) {
      const analyze::Region& r = f.empty[i];
      empty.row(
          {fmt::format("0x{:x}", r.address), mib(r.bytes),
           r.empty_since_step > 0 ? fmt::format("step {}", r.empty_since_step) : support::format_duration(r.empty_since_us)});
    }
    return empty;
  }

  AnswerOptions options_;
};

const Register kVerb{{.name = "fragmentation",
                      .group = Group::answer,
                      .help = "find free memory that cannot be used, and the blocks in the way",
                      .examples = "  vramscope fragmentation run.vram\n"
                                  "  vramscope fragmentation run.vram --json | jq '.worst.unusable'\n",
                      .make = make<FragmentationVerb>}};

}  // namespace

}  // namespace vramscope::cli
