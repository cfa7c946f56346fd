#include "trace/old_reports.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>
#include <utility>

#include "support/json_reader.h"

namespace vramscope::trace {
namespace {

constexpr std::pair<std::string_view, OpRole> kVariableKeys[] = {
    {"gradient_op.", OpRole::gradient}, {"variable_op.", OpRole::storage}, {"variable_value.", OpRole::value}};
constexpr std::pair<std::string_view, Category> kCategories[] = {{"parameter ", Category::parameter},
                                                                 {"optimizer_state ", Category::optimizer_state},
                                                                 {"workspace ", Category::workspace},
                                                                 {"buffer ", Category::buffer}};
constexpr std::pair<std::string_view, EventKind> kFacts[] = {{"fact.held_tensors.", EventKind::held_tensors},
                                                             {"fact.persistent_tape.", EventKind::persistent_tape},
                                                             {"fact.retrace.", EventKind::retrace},
                                                             {"fact.baked_constant.", EventKind::baked_constant},
                                                             {"fact.float64.", EventKind::float64_variable},
                                                             {"fact.dataset_on_device.", EventKind::dataset_on_device},
                                                             {"fact.cached_dataset.", EventKind::cached_dataset}};
constexpr support::JsonLimits kFlat = {.depth = 1, .values = 32};
constexpr std::uint64_t kBytesOfEntry = 256;       // of a table here, and of a string with its place in the dictionary
constexpr std::uint64_t kBytesOfMembersByte = 48;  // of an object for each byte of its text

std::uint32_t index_of(StringId id) { return std::to_underlying(id); }

}  // namespace

OldReports::OldReports(Dictionaries& all, support::MemoryBudget& memory) : memory_(&memory) {
  const auto strings = static_cast<std::uint32_t>(all.strings.size());
  for (std::uint32_t i = 0; i < strings; ++i) add_key(all, i);
  if (!keys_.empty())
    for (std::uint32_t i = 0; i < strings; ++i) {
      add_variable(all, i);
      add_members(all, i);
    }
  memory_ = nullptr;
  texts_.clear();
}

void OldReports::add_key(Dictionaries& all, std::uint32_t string) {
  const std::string key = all.strings[string];
  for (const auto& [prefix, kind] : kFacts)
    if (key.starts_with(prefix) && memory_->take(1, kBytesOfEntry)) keys_[string] = {kind, {}, {}};
  for (const auto& [prefix, role] : kVariableKeys)
    if (key.starts_with(prefix))
      if (const auto op = add_text(all, std::string_view(key).substr(prefix.size())))
        keys_[string] = {EventKind::variable_op, role, *op};
}

void OldReports::add_variable(Dictionaries& all, std::uint32_t string) {
  const std::string value = all.strings[string];
  for (const auto& [word, category] : kCategories)
    if (value.starts_with(word))
      if (const auto name = add_text(all, std::string_view(value).substr(word.size()))) variables_[string] = {category, *name};
}

void OldReports::add_members(Dictionaries& all, std::uint32_t string) {
  if (!all.strings[string].starts_with('{') || !memory_->take(all.strings[string].size(), kBytesOfMembersByte)) return;
  const auto value = support::read_json(all.strings[string], kFlat);
  if (!value || value->object() == nullptr) return;
  Members members;
  for (const auto& [name, member] : *value->object()) {
    Member& into = members[name];
    if (const auto text = member.text()) into.text = add_text(all, *text).value_or(StringId{});
    if (const auto count = member.count()) into.number = *count;
    // Tensors for each step were a fraction.
    if (const auto per_step = member.number(); name == "per_step" && per_step.value_or(-1) >= 0)
      into.number = static_cast<std::uint64_t>(std::llround(std::min(*per_step, 1e9) * 1000));
  }
  members_[string] = std::move(members);
}

std::optional<StringId> OldReports::add_text(Dictionaries& all, std::string_view text) {
  if (text.empty()) return StringId{};
  if (const auto found = texts_.find(text); found != texts_.end()) return found->second;
  if (!memory_->take(2, text.size() + kBytesOfEntry)) return std::nullopt;
  const auto id = static_cast<StringId>(all.strings.size());
  all.strings.emplace_back(text);
  texts_.emplace(text, id);
  return id;
}

std::optional<Report> OldReports::report(const Setting& setting) const {
  const auto key = keys_.find(index_of(setting.key));
  if (key == keys_.end()) return std::nullopt;
  const auto [kind, role, op] = key->second;
  if (kind == EventKind::variable_op) {
    if (role == OpRole::gradient) return VariableOp{op, role, Category::gradient, setting.value};
    const auto variable = variables_.find(index_of(setting.value));
    if (variable == variables_.end()) return std::nullopt;
    return VariableOp{op, role, variable->second.category, variable->second.name};
  }
  const auto members = members_.find(index_of(setting.value));
  if (members == members_.end()) return std::nullopt;
  const auto member = [&](std::string_view name) {
    const auto found = members->second.find(name);
    return found != members->second.end() ? found->second : Member{};
  };
  const auto text = [&](std::string_view name) { return member(name).text; };
  const auto number = [&](std::string_view name) { return member(name).number; };
  const StringId file = text("file");
  const std::uint64_t line = number("line"), bytes = number("bytes");
  switch (kind) {
    case EventKind::held_tensors:
      return HeldTensors{text("name"), text("container"), text("owner"), file, line, number("count"), bytes, number("per_step")};
    case EventKind::persistent_tape:
      return PersistentTape{file, line, number("times")};
    case EventKind::retrace:
      return Retrace{text("function"), text("reason"), file, line, number("traces")};
    case EventKind::baked_constant:
      return BakedConstant{text("op"), text("function"), text("shape"), text("dtype"), file, line, bytes, number("copies")};
    case EventKind::float64_variable:
      return Float64Variable{text("name"), file, line, bytes};
    case EventKind::dataset_on_device:
      return DatasetOnDevice{text("device"), file, line, bytes};
    case EventKind::cached_dataset:
      return CachedDataset{file, line, bytes, number("elements")};
    default:
      return std::nullopt;
  }
}

void OldReports::upgrade(Chunk& chunk) const {
  if (keys_.empty() || chunk.tables.setting.size() == 0) return;
  SettingColumns kept;
  std::size_t row = 0;
  for (EventKind& kind : chunk.kind) {
    if (kind != EventKind::setting) continue;
    const Setting setting = chunk.tables.setting.row(row++);
    if (const auto found = report(setting))
      kind = push_report(chunk.tables, *found);
    else
      kept.push(setting);
  }
  chunk.tables.setting = std::move(kept);
}

void count_frames_that_were_cut(Dictionaries& all) {
  for (Stack& stack : all.stacks) {
    if (stack.frames.empty()) continue;
    const Frame& last = all.frames[std::to_underlying(stack.frames.back())];
    std::string_view function = all.strings[index_of(last.function)];
    if (last.file != StringId{} || !function.starts_with('(') || !function.ends_with(" more frames)")) continue;
    function.remove_prefix(1);
    if (std::from_chars(function.data(), function.data() + function.size(), stack.cut).ec == std::errc{}) stack.frames.pop_back();
  }
}

}  // namespace vramscope::trace
