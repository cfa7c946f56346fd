// Reports of the Python side in traces before format 1.2: settings whose key names the kind of report, and whose value combines
// several fields. The reader turns them into events, so that no other code has to know the old form.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "support/memory_budget.h"
#include "trace/gen/schema.h"
#include "trace/reader.h"

namespace vramscope::trace {

// The first minor version of the format whose reports are events.
inline constexpr std::uint16_t kReportsAreEvents = 2;

class OldReports {
 public:
  OldReports() = default;  // for a trace of the current version: changes nothing
  // Parses the strings of an old trace. Each text inside of them is added to the end of `all` as a string of its own. If `memory`
  // does not allow that, the setting stays a setting.
  OldReports(Dictionaries& all, support::MemoryBudget& memory);

  // Replaces settings by the reports that they hold.
  void upgrade(Chunk& chunk) const;

 private:
  struct Key {
    EventKind kind{};
    OpRole role{};  // variable_op only, as is the op
    StringId op{};
  };
  struct Variable {
    Category category{};
    StringId name{};
  };
  struct Member {
    StringId text{};
    std::uint64_t number = 0;
  };
  using Members = std::map<std::string, Member, std::less<>>;

  void add_key(Dictionaries& all, std::uint32_t string);
  void add_variable(Dictionaries& all, std::uint32_t string);
  void add_members(Dictionaries& all, std::uint32_t string);
  std::optional<StringId> add_text(Dictionaries& all, std::string_view text);
  std::optional<Report> report(const Setting& setting) const;

  support::MemoryBudget* memory_ = nullptr;  // while strings are added
  std::map<std::string, StringId, std::less<>> texts_;
  // By the string's id.
  tsl::robin_map<std::uint32_t, Key> keys_;
  tsl::robin_map<std::uint32_t, Variable> variables_;
  tsl::robin_map<std::uint32_t, Members> members_;
};

// A stack that was cut ended in a frame without a file, "(745 more frames)".
void count_frames_that_were_cut(Dictionaries& all);

}  // namespace vramscope::trace
