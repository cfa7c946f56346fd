#include "analyze/framework.h"

#include <algorithm>

#include <fmt/format.h>

namespace vramscope::analyze {

namespace {

constexpr Framework kNone{.id = trace::Framework::none, .word = "none", .name = {}};

}  // namespace

const Framework& framework(trace::Framework id) {
  const auto all = frameworks();
  const auto found = std::ranges::find(all, id, &Framework::id);
  return found != all.end() ? **found : kNone;
}

const Framework& framework_of(const Store& store, const Kind& kind) {
  const auto& pools = store.dictionaries().pools;
  return framework(kind.pool < pools.size() ? pools[kind.pool].framework : trace::Framework::none);
}

const Framework& framework_of_planned(std::string_view op) {
  const auto all = frameworks();
  const auto owner =
      std::ranges::find_if(all, [&](const Framework* f) { return f->is_own_name != nullptr && f->is_own_name(op); });
  return owner != all.end() ? **owner : kNone;
}

OpMeaning meaning_in_plan(std::string_view op) { return framework_of_planned(op).meaning_of(op, "output"); }

std::string_view word_of(trace::Framework id) {
  const Framework& known = framework(id);
  return known.id == id ? known.word : trace::name_of(id);
}

std::vector<std::pair<std::string_view, std::string>> framework_notes(const Summary& summary) {
  std::vector<std::pair<std::string_view, std::string>> out;
  for (const Framework* framework : frameworks()) {
    std::string notes;
    for (const SettingNote& note : framework->setting_notes)
      if (std::ranges::count(summary.settings, std::pair(std::string(note.key), std::string(note.value))) > 0)
        notes += fmt::format("{}{}", notes.empty() ? "" : "; ", note.text);
    if (!notes.empty()) out.emplace_back(framework->name, std::move(notes));
  }
  return out;
}

}  // namespace vramscope::analyze
