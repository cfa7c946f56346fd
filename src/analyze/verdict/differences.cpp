#include "analyze/verdict/differences.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "analyze/labels.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using Row = std::pair<std::string, std::vector<std::string>>;

// Of this one recording, not of what was started: they differ between any two runs.
bool is_run_specific(const std::string& key) {
  constexpr std::array<std::string_view, 5> kParts = {"time", "host", "path", "folder", "clock"};
  return key.starts_with("process.") || key.starts_with("vramscope.") ||
         std::ranges::any_of(kParts, [&](std::string_view part) { return key.find(part) != std::string::npos; });
}

// What people change comes before what was installed.
int turn_of(const std::string& key) { return key.starts_with("env.") ? 0 : key.ends_with(".version") ? 1 : 2; }

bool differ(const std::vector<std::string>& values) {
  return std::ranges::any_of(values, [&](const std::string& value) { return value != values.front(); });
}

// An option with its values ("--batch 32"), or a word before the first option ("train.py").
std::vector<std::string> options_of(const std::string& command) {
  std::vector<std::string> out;
  std::istringstream words(command);
  for (std::string word; words >> word;) {
    const bool value = !out.empty() && !word.starts_with('-') && out.back().starts_with('-') && !out.back().contains('=');
    if (value)
      out.back() += " " + word;
    else
      out.push_back(word);
  }
  return out;
}

std::string setting_of(const Engine& engine, std::string_view name) {
  for (const auto& [key, value] : engine.overview().settings)
    if (key == name) return value;
  return {};
}

}  // namespace

std::vector<std::string> differing_arguments(std::span<const std::string> commands) {
  std::vector<std::vector<std::string>> options;
  options.reserve(commands.size());
  for (const std::string& command : commands) options.push_back(options_of(support::short_command(command)));
  const auto in_all = [&](const std::string& option) {
    return std::ranges::all_of(options, [&](const auto& each) { return std::ranges::find(each, option) != each.end(); });
  };
  std::vector<std::string> out(commands.size());
  for (std::size_t i = 0; i < options.size(); ++i)
    for (const std::string& option : options[i])
      if (!in_all(option)) out[i] += (out[i].empty() ? "" : " ") + option;
  return out;
}

std::vector<Row> differences(std::span<const Engine* const> runs, std::span<const CompareSide> sides) {
  std::vector<std::string> commands, samples;
  for (const Engine* run : runs) commands.push_back(setting_of(*run, "process.command"));
  for (const CompareSide& side : sides) samples.push_back(side.samples ? support::format_count(*side.samples) : "");
  std::map<std::string, std::vector<std::string>> settings;
  for (std::size_t r = 0; r < runs.size(); ++r)
    for (const auto& [key, value] : runs[r]->overview().settings) {
      auto& row = settings[key];
      row.resize(runs.size());
      row[r] = value;
    }
  std::vector<Row> recorded;
  for (auto& row : settings)
    if (!is_run_specific(row.first)) recorded.emplace_back(row.first, std::move(row.second));
  std::ranges::stable_sort(recorded, {}, [](const Row& row) { return turn_of(row.first); });
  std::vector<Row> out = {{"arguments", differing_arguments(commands)}, {std::string(kSamplesPerStep), samples}};
  std::ranges::move(recorded, std::back_inserter(out));
  std::erase_if(out, [](const Row& row) { return !differ(row.second); });
  for (Row& row : out)
    if (row.first.starts_with("env.")) row.first.erase(0, 4);
  return out;
}

}  // namespace vramscope::analyze
