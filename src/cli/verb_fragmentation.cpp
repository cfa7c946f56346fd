#include <fmt/format.h>

#include "cli/answer.h"
#include "cli/terminal.h"
#include "cli/unit.h"
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
      return Answer{text(engine, *frag), analyze::to_json(*frag)};
    });
  }

 private:
  std::size_t most(std::size_t n) const { return options_.rows == 0 ? n : std::min<std::size_t>(options_.rows, n); }

  std::string text(const analyze::Engine& engine, const analyze::Fragmentation& f) const {
    std::string out = headline(f.sentence);
    if (f.points.empty()) return out;
    bool colour = wants_colour(stdout);
    Table table;
    const Unit unit = Unit::for_all(f.points, [](const analyze::FragPoint& p) { return p.live; });
    for (const char* head : {"AT", "STEP", "POOL", "LIVE", "CACHED", "LARGEST FREE", "REQUEST", "UNUSABLE", "SLACK"})
      table.column(head);
    std::size_t every = std::max<std::size_t>(1, f.points.size() / most(f.points.size()));
    for (std::size_t i = 0; i < f.points.size(); i += every) {
      const analyze::FragPoint& p = f.points[i];
      table.row({age(p.time_us), p.step > 0 ? std::to_string(p.step) : "–", unit(p.pool), unit(p.live), unit(p.cached),
                 unit(p.largest_free), unit(p.request), unit(p.unusable), unit(p.live - p.requested)});
    }
    out += "\n" + dim(fmt::format("  {}; unusable: in holes smaller than the largest recent request", unit.name()), colour) +
           "\n" + table.text(colour);
    out += fmt::format("\n  Worst at {}: {} of slack inside blocks, {} of it rounding to 256 bytes.\n", age(f.worst.time_us),
                       support::format_size(f.slack), support::format_size(f.rounding));
    if (!f.grown.empty()) {
      Table grown;
      for (const char* head : {"AT", "STEP", "REQUEST", "FREE", "LARGEST HOLE", "HOLES", "GREW BY"}) grown.column(head);
      grown.column("FOR", Table::Align::left);
      for (std::size_t i = 0; i < most(f.grown.size()); ++i) {
        const analyze::Grown& g = f.grown[i];
        grown.row({age(g.time_us), g.step > 0 ? std::to_string(g.step) : "–", mib(g.request), mib(g.free), mib(g.largest_hole),
                   std::to_string(g.holes), mib(g.grew_by), dash(short_op(g.op))});
      }
      out += "\n" + dim("  Enough was free, nothing fitted, the pool grew", colour) + "\n" + grown.text(colour);
    }
    if (!f.pins.empty()) {
      Table pins;
      for (const char* head : {"IN THE WAY", "LAYER", "LINE"}) pins.column(head, Table::Align::left);
      for (const char* head : {"ADDRESS", "AGE", "SIZE", "KEEPS APART"}) pins.column(head);
      std::uint64_t now = f.worst.time_us;
      for (std::size_t i = 0; i < most(f.pins.size()); ++i) {
        const analyze::Pin& p = f.pins[i];
        pins.row({dash(short_op(p.block.op)), dash(p.block.layer), dash(p.block.line), fmt::format("0x{:x}", p.block.address),
                  age(now - std::min(now, p.block.birth_us)), support::format_size(p.block.granted),
                  support::format_size(p.frees)});
      }
      out += "\n" + pins.text(colour);
    }
    if (!f.empty.empty()) {
      Table empty;
      empty.column("EMPTY REGION", Table::Align::left);
      empty.column("MiB");
      empty.column("SINCE", Table::Align::left);
      for (std::size_t i = 0; i < most(f.empty.size()); ++i) {
        const analyze::Region& r = f.empty[i];
        empty.row({fmt::format("0x{:x}", r.address), mib(r.bytes),
                   r.empty_since_step > 0 ? fmt::format("step {}", r.empty_since_step) : age(r.empty_since_us)});
      }
      out += "\n" + empty.text(colour);
    }
    (void)engine;
    return out + to_do(f.advice);
  }

  AnswerOptions options_;
};

const Register kVerb{{.name = "fragmentation",
                      .group = Group::answer,
                      .help = "free memory that cannot be used, and which blocks are in the way",
                      .examples = "  vramscope fragmentation run.vram\n"
                                  "  vramscope fragmentation run.vram --json | jq '.worst.unusable'\n",
                      .make = make<FragmentationVerb>}};

}  // namespace

}  // namespace vramscope::cli
