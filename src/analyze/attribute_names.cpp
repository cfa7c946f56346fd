#include <tsl/robin_map.h>

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "analyze/attribute.h"
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

// "StatefulPartitionedCall/sequential/dense/MatMul" is told as "sequential/dense/MatMul".
std::string_view without_calls(std::string_view op) {
  while (op.starts_with("StatefulPartitionedCall") || op.starts_with("PartitionedCall")) {
    std::size_t slash = op.find('/');
    if (slash == std::string_view::npos) break;
    op.remove_prefix(slash + 1);
  }
  return op;
}

// What the Python side knows about the output of single graph ops (docs/design/python_side.md): the op that makes a variable's
// gradient, and the op that writes a variable, whose new block is the variable.
using OpCategories = tsl::robin_map<std::string, trace::Category>;

OpCategories op_categories(const std::vector<Stamped<trace::Setting>>& settings, const trace::Dictionaries& words) {
  constexpr std::string_view kGradient = "gradient_op.", kVariable = "variable_op.";
  OpCategories out;
  for (const auto& setting : settings) {
    std::string_view key = word(words, setting.row.key);
    if (key.starts_with(kGradient)) {
      out[std::string(key.substr(kGradient.size()))] = trace::Category::gradient;
    } else if (key.starts_with(kVariable)) {
      std::string_view value = word(words, setting.row.value);
      out[std::string(key.substr(kVariable.size()))] = value.starts_with("parameter ")         ? trace::Category::parameter
                                                       : value.starts_with("optimizer_state ") ? trace::Category::optimizer_state
                                                                                               : trace::Category::buffer;
    }
  }
  return out;
}

}  // namespace

OpSourceWords source_of(const trace::Dictionaries& words, const LineNames& lines, std::string_view op) {
  if (op.empty()) return {};
  for (const trace::OpSource& source : words.op_sources)
    if (std::string_view name = word(words, source.op); name == op || name == without_calls(op)) {
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
  const OpCategories told = op_categories(settings, words);
  const LineNames lines(words);
  tsl::robin_map<std::string, const trace::OpSource*> sources;
  for (const trace::OpSource& source : words.op_sources) sources[std::string(word(words, source.op))] = &source;
  auto told_source = [&](std::string_view op) -> const trace::OpSource* {
    for (std::string_view name : {op, without_calls(op)})
      if (auto it = sources.find(std::string(name)); it != sources.end()) return it->second;
    return nullptr;
  };
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
      const trace::OpSource* source = sources.empty() ? nullptr : told_source(op);
      if (source != nullptr) {
        if (auto file = word(words, source->file); !file.empty()) k.line = names.id(lines.of(source->file, source->line));
        if (auto layer = word(words, source->layer); !layer.empty()) meaning.layer = layer;
      }
      for (std::string_view name : {op, without_calls(op)})
        if (auto found = told.find(std::string(name)); found != told.end()) meaning.category = found->second;
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
    kind.line = k.line;
    if (kind.line == 0) {
      auto [line, first] = stack_lines.try_emplace(static_cast<std::size_t>(site.stack), 0u);
      if (first) line.value() = names.id(lines.of_stack(static_cast<std::size_t>(site.stack)));
      kind.line = line.value();
    }
  }
}

}  // namespace vramscope::analyze
