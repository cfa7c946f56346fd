#include <tsl/robin_map.h>

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "analyze/attribute.h"
#include "analyze/graph_ops.h"
#include "analyze/line_names.h"
#include "analyze/op_names.h"
#include "support/hash.h"

namespace vramscope::analyze {
namespace {

using trace::StringId;

std::string_view word(const trace::Dictionaries& words, StringId id) {
  auto i = static_cast<std::size_t>(id);
  return i < words.strings.size() ? std::string_view(words.strings[i]) : std::string_view();
}

}  // namespace

OpSourceWords source_of(const trace::Dictionaries& words, const LineNames& lines, std::string_view op) {
  if (op.empty()) return {};
  const std::vector<std::string_view> told_as = names_in_graphs(op);
  for (const trace::OpSource& source : words.op_sources)
    if (std::ranges::find(told_as, word(words, source.op)) != told_as.end()) {
      std::string_view file = word(words, source.file);
      return {std::string(word(words, source.layer)), file.empty() ? "" : lines.of(source.file, source.line)};
    }
  return {};
}

std::string line_of(const trace::Dictionaries& words, const trace::Site& site) {
  const LineNames lines(words);
  OpSourceWords source = source_of(words, lines, word(words, site.op));
  return !source.line.empty() ? source.line : lines.of_stack(static_cast<std::size_t>(site.stack));
}

void name_kinds(std::vector<Kind>& kinds, const std::vector<Stamped<trace::Setting>>& settings, const trace::Dictionaries& words,
                NameTable& names) {
  const GraphOps told(settings, words);
  const LineNames lines(words);
  tsl::robin_map<std::uint64_t, Kind, support::Mix> known;  // by op, region and framework
  tsl::robin_map<std::size_t, std::uint32_t> stack_lines;
  for (Kind& kind : kinds) {
    const trace::Site& site = words.sites[kind.site];
    auto framework = kind.pool < words.pools.size() ? words.pools[kind.pool].framework : trace::Framework::none;
    std::uint64_t key = static_cast<std::uint64_t>(site.op) << 32 | static_cast<std::uint64_t>(site.region) << 3 |
                        static_cast<std::uint64_t>(framework);
    auto [it, fresh] = known.try_emplace(key, Kind{});
    if (fresh) {
      std::string_view op = word(words, site.op);
      OpMeaning meaning = meaning_of(op, word(words, site.region), framework);
      Kind& k = it.value();
      if (const trace::OpSource* source = told.source(op))
        if (auto file = word(words, source->file); !file.empty()) k.line = names.id(lines.of(source->file, source->line));
      // Where somebody told, a scope in the name that is no layer is none.
      if (auto layer = told.layer(op)) meaning.layer = *layer;
      if (auto category = told.category(op); category != trace::Category::unknown) meaning.category = category;
      k.kept_as = static_cast<std::uint8_t>(told.value_of(op));
      k.variable = names.id(told.variable(op));
      k.layer = names.id(meaning.layer);
      k.category = static_cast<std::uint8_t>(meaning.category);
      k.stage = static_cast<std::uint8_t>(meaning.stage);
      k.persistent = word(words, site.region) == "persist";
    }
    const Kind& k = it.value();
    kind.layer = k.layer;
    kind.category = k.category;
    kind.stage = k.stage;
    kind.persistent = k.persistent;
    kind.kept_as = k.kept_as;
    kind.variable = k.variable;
    kind.line = k.line;
    if (kind.line == 0) {
      auto [line, first] = stack_lines.try_emplace(static_cast<std::size_t>(site.stack), 0u);
      if (first) line.value() = names.id(lines.of_stack(static_cast<std::size_t>(site.stack)));
      kind.line = line.value();
    }
  }
}

}  // namespace vramscope::analyze
