#include "analyze/whatif/batches.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "analyze/whatif/shapes.h"

namespace vramscope::analyze {
namespace {

// "train.py --batch 8 -x" as numbers {8} and the text around them.
struct Command {
  std::vector<std::uint64_t> numbers;
  std::string rest;
};

Command command_of(std::string_view text) {
  Command out;
  for (std::size_t i = 0; i < text.size();) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), number);
    if (error == std::errc{}) {
      out.numbers.push_back(number);
      out.rest += '#';
      i = static_cast<std::size_t>(end - text.data());
    } else {
      out.rest += text[i++];
    }
  }
  return out;
}

std::optional<std::vector<std::uint64_t>> from_commands(std::span<const Engine* const> runs) {
  std::vector<Command> commands;
  for (const Engine* run : runs) commands.push_back(command_of(setting_text(run->state().store, "process.command")));
  std::optional<std::size_t> differs;
  for (const Command& command : commands) {
    if (command.rest != commands.front().rest || command.numbers.size() != commands.front().numbers.size()) return std::nullopt;
    for (std::size_t i = 0; i < command.numbers.size(); ++i) {
      if (command.numbers[i] == commands.front().numbers[i]) continue;
      if (differs && *differs != i) return std::nullopt;
      differs = i;
    }
  }
  if (!differs) return std::nullopt;
  std::vector<std::uint64_t> out;
  for (const Command& command : commands) out.push_back(command.numbers[*differs]);
  return out;
}

}  // namespace

Result<std::vector<std::uint64_t>> batches_of(std::span<const Engine* const> runs, std::span<const RecordedPool> recorded,
                                              std::span<const std::string> names, Unit unit) {
  if (runs.size() > 1)
    if (auto found = from_commands(runs); found && std::ranges::find(*found, std::uint64_t{0}) == found->end()) return *found;
  if (unit == Unit::length) return fail("the sequence lengths are not known; give them with --batches");
  std::vector<std::uint64_t> out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto batch = batch_from_shapes(runs[i]->state().store, recorded[i]);
    if (!batch || *batch == 0) return fail(fmt::format("{}: the batch size is not known; give it with --batches", names[i]));
    out.push_back(*batch);
  }
  return out;
}

}  // namespace vramscope::analyze
