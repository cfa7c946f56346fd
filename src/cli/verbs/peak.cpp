#include <fmt/format.h>

#include <algorithm>

#include "cli/show/answer.h"
#include "cli/show/plot.h"
#include "cli/show/terminal.h"
#include "cli/show/unit.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

using analyze::By;

class PeakVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    options_.declare(arguments);
    arguments.text(
        "--by", by_,
        "what to group by: category, layer, op, line, dtype, ... or several with commas; block: each one by itself; default: "
        "blocks that are alike",
        "KEYS");
    arguments.text("--at", at_, kInstantHelp, "INSTANT");
    arguments.choice("--phase", phase_, {"steady", "all"},
                     "use the peak of the steady steps (default if there are any) or of the whole run");
  }

  Result<int> run() override {
    std::string at = !at_.empty() ? at_ : phase_ == "all" ? "peak" : "steady";
    std::vector<By> by = {By::category, By::layer, By::op, By::region, By::line};
    const bool single = by_ == "block";
    const bool blocks = by_.empty() || single;
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
      request.by = single ? std::vector<By>{} : by;
      request.where = options_.where;
      request.place = place;
      request.limit = static_cast<std::uint32_t>(options_.rows);
      auto live = engine.peak(request);
      if (!live) return std::unexpected(live.error());
      std::string json = analyze::to_json(*live);
      if (single) live->groups = groups_of_one(live->blocks);
      return Answer{text(engine, *live, at, place, by, blocks), std::move(json)};
    });
  }

 private:
  static std::vector<analyze::Group> groups_of_one(const std::vector<analyze::Block>& blocks) {
    std::vector<analyze::Group> out;
    for (const analyze::Block& b : blocks) {
      analyze::Group group;
      group.keys = {b.category, b.layer, b.op, b.region, b.line};
      group.bytes = b.granted;
      group.requested = b.requested;
      group.count = 1;
      group.oldest_us = group.newest_us = b.birth_us;
      group.example = b.id;
      out.push_back(std::move(group));
    }
    return out;
  }

  std::string text(const analyze::Engine& engine, const analyze::Live& live, const std::string& at, int place,
                   const std::vector<By>& by, bool blocks) const {
    std::string out = headline(*live.sentence);
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

  // The same bytes by category, on as few lines as the terminal allows.
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
    if (std::string coloured = category_bar(parts, unit, std::min<std::size_t>(88, room - 4));
        !coloured.empty() && !options_.ascii)
      return "\n" + coloured;
    Legend legend(terminal_width());
    for (const auto& [name, bytes] : parts) {
      const std::string part = fmt::format("{} {}", name, unit(bytes));
      legend.add(part, part.size());
    }
    return "\n" + legend.text();
  }

  static std::string remedies(const analyze::Engine& engine) {
    std::vector<std::pair<std::string, analyze::Bytes>>
        parts;  // of one remedy, all that it saves: parameters and optimizer state
    std::size_t wide = 11;
    for (const analyze::Finding& f : engine.findings().findings) {
      if (!f.at_stake || f.remedy.empty()) continue;
      const auto same = std::ranges::find(parts, f.remedy, [](const auto& part) { return part.first; });
      if (same == parts.end())
        parts.emplace_back(f.remedy, *f.at_stake);
      else
        same->second += *f.at_stake;
    }
    for (const auto& [remedy, bytes] : parts) wide = std::max(wide, support::format_size(bytes).size());
    const std::size_t start = std::string_view("To do").size() + 2 + wide + 2;
    std::string out;
    for (const auto& [remedy, bytes] : parts)
      if (out.size() < 2000)
        out += fmt::format("{}  {:>{}}  {}", out.empty() ? bold("To do", wants_colour(stdout)) : "     ",
                           support::format_size(bytes), wide, paragraph(in_a_sentence(remedy), start).substr(start));
    return out.empty() ? out : "\n" + out;
  }

  AnswerOptions options_;
  std::string by_, at_, phase_ = "steady";
};

const Register kVerb{{.name = "peak",
                      .group = Group::answer,
                      .help = "show what was live at the peak, largest first",
                      .examples = "  vramscope peak run.vram\n"
                                  "  vramscope peak run.vram --by layer,category --where 'phase:backward'\n"
                                  "  vramscope peak run.vram --at step:20 --json\n",
                      .make = make<PeakVerb>}};

}  // namespace

}  // namespace vramscope::cli
