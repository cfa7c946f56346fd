#include <fmt/format.h>

#include <algorithm>

#include "cli/answer.h"
#include "cli/plot.h"
#include "cli/terminal.h"
#include "cli/unit.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

using analyze::By;

std::string instant_words(const analyze::Engine& engine, const analyze::Live& live, const std::string& at, int place_index) {
  auto places = engine.places();
  const analyze::Place& place = places[static_cast<std::size_t>(place_index < 0 ? engine.main_place() : place_index)];
  if (at == "steady" && place.steady) {
    analyze::Steps steps = engine.steps(place_index);
    return fmt::format("at the steady peak (steps {} to {})", steps.steps[steps.steady_first].number,
                       steps.steps[steps.steady_last].number);
  }
  if (at == "steady" || at == "peak")
    return fmt::format("at the peak{}", live.step > 0 ? fmt::format(" (step {})", live.step) : "");
  if (at == "end") return "at the end";
  return fmt::format("at {}{}", age(live.time_us), live.step > 0 ? fmt::format(" (step {})", live.step) : "");
}

class PeakVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    options_.declare(arguments);
    arguments.text(
        "--by", by_,
        "what to group by: category, layer, op, line, dtype, ... or several with commas; default: blocks that are alike", "KEYS");
    arguments.text("--at", at_, "peak, steady, end, step:N, a time such as 6.2s, oom", "INSTANT");
    arguments.choice("--phase", phase_, {"steady", "all"},
                     "the steady steps' peak (default where there are any) or the whole run's");
  }

  Result<int> run() override {
    std::string at = !at_.empty() ? at_ : phase_ == "all" ? "peak" : "steady";
    std::vector<By> by = {By::category, By::layer, By::op, By::region, By::line};
    bool blocks = by_.empty();
    if (!blocks) {
      by.clear();
      for (std::size_t start = 0; start <= by_.size();) {
        std::size_t comma = std::min(by_.find(',', start), by_.size());
        auto key = analyze::by_from(by_.substr(start, comma - start));
        if (!key) return std::unexpected(key.error());
        by.push_back(*key);
        start = comma + 1;
      }
    }
    return answer_each(options_, [&](const analyze::Engine& engine, int place) -> Result<Answer> {
      analyze::LiveRequest request;
      request.at = at;
      request.by = by;
      request.where = options_.where;
      request.place = place;
      request.limit = static_cast<std::uint32_t>(options_.rows);
      auto live = engine.live(request);
      if (!live) return std::unexpected(live.error());
      return Answer{text(engine, *live, at, place, by, blocks), analyze::to_json(*live)};
    });
  }

 private:
  std::string text(const analyze::Engine& engine, const analyze::Live& live, const std::string& at, int place,
                   const std::vector<By>& by, bool blocks) const {
    std::string out = headline(sentence(engine, live, at, place));
    if (live.count == 0) return out;
    Table table;
    const Unit unit = Unit::for_largest(live.total);
    auto names = analyze::by_names();
    std::vector<std::string> heads;
    if (blocks)
      heads = {"CATEGORY", "LAYER", "OP", "LINE"};
    else
      for (By b : by) {
        std::string head(names[static_cast<std::size_t>(b)]);
        std::ranges::transform(head, head.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
        heads.push_back(head);
      }
    // What a narrow terminal leaves out, the highest number first.
    for (const std::string& head : heads) table.column(head, Table::Align::left, head == "LINE" ? 3 : 0);
    table.column("BLOCKS");
    table.column("AGE", Table::Align::right, 2);
    table.column(unit.name());
    table.column("SHARE", Table::Align::right, 1);
    bool colour = wants_colour(stdout);
    if (colour || options_.ascii) table.column(std::string(8, ' '), Table::Align::left, 4);
    auto category = std::ranges::find(by, By::category) - by.begin();
    for (const analyze::Group& g : live.groups) {
      std::vector<std::string> row;
      std::string group = static_cast<std::size_t>(category) < by.size() ? g.keys[static_cast<std::size_t>(category)] : "";
      if (blocks)
        row = {in_category(g.keys[0]), dash(g.keys[1]), dash(short_op(g.keys[2], g.keys[3])), dash(g.keys[4])};
      else
        for (const std::string& key : g.keys) row.push_back(!group.empty() && key == group ? in_category(key) : dash(key));
      row.push_back(support::format_count(g.count));
      row.push_back(age(live.time_us - std::min(live.time_us, g.oldest_us)));
      row.push_back(unit(g.bytes));
      row.push_back(share(g.bytes, live.total));
      if (colour || options_.ascii) row.push_back(in_category(group, bar(g.bytes, live.groups[0].bytes, 8, options_.ascii)));
      table.row(row);
    }
    auto last = [&](const std::string& name, std::uint64_t count, analyze::Bytes bytes) {
      std::vector<std::string> row(heads.size(), "");
      row[0] = name;
      row.push_back(support::format_count(count));
      row.push_back("");
      row.push_back(unit(bytes));
      row.push_back(share(bytes, live.total));
      return row;
    };
    if (live.rest_count > 0)
      table.row(last(fmt::format("{} more", support::format_count(live.rest_groups)), live.rest_count, live.rest_bytes));
    table.total(last("all", live.count, live.total));
    return out + "\n" + table.text(colour) + categories(engine, at, place, unit) + remedies(engine);
  }

  // The same bytes by category, on one line.
  std::string categories(const analyze::Engine& engine, const std::string& at, int place, const Unit& unit) const {
    analyze::LiveRequest request;
    request.at = at;
    request.where = options_.where;
    request.place = place;
    auto live = engine.live(request);
    if (!live) return {};
    std::vector<std::pair<std::string, std::uint64_t>> parts;
    for (const analyze::Group& g : live->groups) parts.emplace_back(g.keys[0], g.bytes);
    std::size_t room = terminal_width() == 0 ? 120 : terminal_width();
    if (std::string coloured = category_bar(parts, std::min<std::size_t>(88, room - 4)); !coloured.empty() && !options_.ascii)
      return "\n" + coloured;
    std::string out = "\n ";
    for (const auto& [name, bytes] : parts) out += fmt::format(" {} {} ", name, unit(bytes));
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
  }

  static std::string remedies(const analyze::Engine& engine) {
    std::string out;
    for (const analyze::Finding& f : engine.findings().findings)
      if (f.at_stake && !f.remedy.empty() && out.size() < 2000)
        out += fmt::format("{}  {:>11}  {}\n", out.empty() ? bold("To do", wants_colour(stdout)) : "     ",
                           support::format_size(*f.at_stake), in_a_sentence(f.remedy));
    return out.empty() ? out : "\n" + out;
  }

  std::string sentence(const analyze::Engine& engine, const analyze::Live& live, const std::string& at, int place_index) const {
    if (live.count == 0)
      return options_.where.empty() ? "Nothing was live." : fmt::format("Nothing that matches '{}' was live.", options_.where);
    auto places = engine.places();
    const analyze::Place& place = places[static_cast<std::size_t>(place_index < 0 ? engine.main_place() : place_index)];
    std::string out = fmt::format("{}{} {}", place.order_exact ? "" : "At least ", support::format_size(live.total),
                                  instant_words(engine, live, at, place_index));
    analyze::LiveRequest by_layer;
    by_layer.at = at;
    by_layer.by = {By::layer};
    by_layer.where = options_.where;
    by_layer.place = place_index;
    if (auto layers = engine.live(by_layer))
      for (const analyze::Group& g : layers->groups)
        if (!g.keys[0].empty()) {
          out += fmt::format(", {} of it in {}", support::format_size(g.bytes), analyze::layer_in_words(g.keys[0]));
          break;
        }
    if (at == "steady" && place.steady && place.peak > place.steady_peak + place.steady_peak / 50 && options_.where.empty()) {
      auto peak = engine.resolve("peak", place_index);
      analyze::LiveRequest request;
      request.place = place_index;
      auto then = engine.live(request);
      bool scratch = place.device >= 0 && then && !then->groups.empty() && then->groups[0].keys[0] == "temporaries";
      std::string when = then && then->step > 0 ? fmt::format("in step {}", then->step) : "before the first step";
      if (peak)
        out += fmt::format("; the {} peak was {} {}", support::format_size(place.peak), scratch ? "autotuning" : "reached", when);
    }
    return out + ".";
  }

  AnswerOptions options_;
  std::string by_, at_, phase_ = "steady";
};

const Register kVerb{{.name = "peak",
                      .group = Group::answer,
                      .help = "what was in memory at the peak, largest first",
                      .examples = "  vramscope peak run.vram\n"
                                  "  vramscope peak run.vram --by layer,category --where 'phase:backward'\n"
                                  "  vramscope peak run.vram --at step:20 --json\n",
                      .make = make<PeakVerb>}};

}  // namespace

}  // namespace vramscope::cli
