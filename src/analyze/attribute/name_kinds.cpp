#include <tsl/robin_map.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "analyze/attribute/attribute.h"
#include "analyze/attribute/graph_ops.h"
#include "analyze/attribute/line_names.h"
#include "analyze/attribute/op_names.h"
#include "analyze/framework.h"
#include "support/secret_hash.h"

namespace vramscope::analyze {
namespace {

// Reports about an op refer to its result, not to its scratch memory.
trace::Category with_result(trace::Category named, trace::Category result) {
  using trace::Category;
  const bool scratch = named == Category::workspace || named == Category::temporary;
  const bool of_result = result == Category::gradient || result == Category::activation;
  return result == Category::unknown || (scratch && of_result) ? named : result;
}

// TensorFlow's input pipeline allocates in threads of its own: without an op, and without a stack. The size leads to the stage
// that keeps such blocks: elements lie in a shuffle buffer or a cache, batches are made by batch().
class StageLines {
 public:
  StageLines(std::span<const trace::Report> reports, const trace::Dictionaries& dictionaries) : dictionaries_(dictionaries) {
    for (const trace::Report& report : reports)
      if (const auto* stage = std::get_if<trace::DatasetStage>(&report); stage != nullptr && keeps(*stage))
        stages_.push_back(stage);
  }
  // Nothing if no stage fits, or several lines do.
  const trace::DatasetStage* of(std::uint64_t requested) const {
    const trace::DatasetStage* found = nullptr;
    for (const trace::DatasetStage* stage : stages_) {
      if (requested < kSmallest || requested > stage->bytes || stage->bytes - requested > stage->bytes / kRest) continue;
      if (found != nullptr && (found->file != stage->file || found->line != stage->line)) return nullptr;
      found = stage;
    }
    return found;
  }

 private:
  static constexpr std::uint64_t kSmallest = 1024;
  static constexpr std::uint64_t kRest = 8;  // of an element, at most, is in its smaller tensors, such as labels

  bool keeps(const trace::DatasetStage& stage) const {
    constexpr std::string_view kKeeping[] = {"shuffle", "cache", "batch", "padded_batch"};
    return std::ranges::find(kKeeping, text_of(dictionaries_, stage.op)) != std::end(kKeeping);
  }

  const trace::Dictionaries& dictionaries_;
  std::vector<const trace::DatasetStage*> stages_;
};

// Fills what follows from names. Kinds that share op, region and framework have it in common.
class KindNamer {
 public:
  KindNamer(const Tables& tables, const trace::Dictionaries& dictionaries, NameTable& names)
      : dictionaries_(dictionaries),
        names_(names),
        graph_ops_(tables.reports, dictionaries),
        stages_(tables.reports, dictionaries),
        lines_(dictionaries, folders_of(tables.settings, dictionaries)) {}

  void name(Kind& kind) {
    const trace::Site& site = dictionaries_.sites[kind.site];
    const auto framework =
        kind.pool < dictionaries_.pools.size() ? dictionaries_.pools[kind.pool].framework : trace::Framework::none;
    auto [entry, fresh] = named_.try_emplace(key_of(site, framework), Kind{});
    if (fresh) entry.value() = named_by_op(site, framework);
    const Kind& named = entry.value();
    kind.layer = named.layer;
    kind.category = named.category;
    kind.stage = named.stage;
    kind.unread = named.unread;
    kind.kept_as = named.kept_as;
    kind.variable = named.variable;
    kind.line = named.line != 0 ? named.line : line_of_stack(static_cast<std::size_t>(site.stack));
    const bool by_nobody = kind.line == 0 && static_cast<std::size_t>(site.op) == 0 && static_cast<std::size_t>(site.stack) == 0;
    if (by_nobody && analyze::framework(framework).pipeline_has_no_ops && dictionaries_.pools[kind.pool].device < 0)
      if (const trace::DatasetStage* stage = stages_.of(kind.requested))
        kind.line = names_.id(lines_.of(stage->file, stage->line));
  }

 private:
  static std::uint64_t key_of(const trace::Site& site, trace::Framework framework) {
    return (static_cast<std::uint64_t>(site.op) << 32) ^ (static_cast<std::uint64_t>(site.region) << 8) ^
           static_cast<std::uint64_t>(framework);
  }

  Kind named_by_op(const trace::Site& site, trace::Framework framework) {
    const std::string_view op = text_of(dictionaries_, site.op), region = text_of(dictionaries_, site.region);
    const OpMeaning meaning = meaning_of(op, region, framework);
    Kind out;
    if (const trace::OpSource* source = graph_ops_.source(op))
      if (!text_of(dictionaries_, source->file).empty()) out.line = names_.id(lines_.of(source->file, source->line));
    out.kept_as = static_cast<std::uint8_t>(graph_ops_.kept_category(op));
    out.variable = names_.id(graph_ops_.variable(op));
    // A scope in the name of a reported op is a layer only if it was reported as one.
    out.layer = names_.id(graph_ops_.layer(op).value_or(meaning.layer));
    out.category = static_cast<std::uint8_t>(with_result(meaning.category, graph_ops_.result_category(op)));
    out.stage = static_cast<std::uint8_t>(meaning.stage);
    out.unread = graph_ops_.unread(op) ? 1 : 0;
    return out;
  }

  std::uint32_t line_of_stack(std::size_t stack) {
    auto [entry, fresh] = stack_lines_.try_emplace(stack, 0u);
    if (fresh) entry.value() = names_.id(lines_.of_stack(stack));
    return entry.value();
  }

  const trace::Dictionaries& dictionaries_;
  NameTable& names_;
  const GraphOps graph_ops_;
  const StageLines stages_;
  const LineNames lines_;
  tsl::robin_map<std::uint64_t, Kind, support::SecretHash> named_;
  tsl::robin_map<std::size_t, std::uint32_t> stack_lines_;
};

}  // namespace

SourceTexts source_of(const trace::Dictionaries& dictionaries, const LineNames& lines, std::string_view op) {
  if (op.empty()) return {};
  const std::vector<std::string_view> names = names_in_graphs(op);
  for (const trace::OpSource& source : dictionaries.op_sources)
    if (std::ranges::find(names, text_of(dictionaries, source.op)) != names.end()) {
      const bool has_file = !text_of(dictionaries, source.file).empty();
      return {std::string(text_of(dictionaries, source.layer)), has_file ? lines.of(source.file, source.line) : ""};
    }
  return {};
}

std::string line_of(const Store& store, const trace::Site& site) {
  const trace::Dictionaries& dictionaries = store.dictionaries();
  const LineNames lines(dictionaries, folders_of(store));
  const SourceTexts source = source_of(dictionaries, lines, text_of(dictionaries, site.op));
  return !source.line.empty() ? source.line : lines.of_stack(static_cast<std::size_t>(site.stack));
}

void name_kinds(Tables& tables, const trace::Dictionaries& dictionaries, NameTable& names) {
  KindNamer namer(tables, dictionaries, names);
  for (Kind& kind : tables.kinds) namer.name(kind);
}

}  // namespace vramscope::analyze
