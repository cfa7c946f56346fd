// What each thread, and the process as a whole, was doing according to its marks.
#pragma once

#include <tsl/robin_map.h>
#include <tsl/robin_set.h>

#include <cstdint>
#include <vector>

#include "analyze/index/name_table.h"
#include "analyze/index/store.h"

namespace vramscope::analyze {

// What a thread was doing from `pos` on.
struct Scope {
  std::uint64_t pos = 0;
  std::uint32_t layer = 0;
  Stage stage = Stage::other;
};
using Timeline = std::vector<Scope>;

// The scope at a position; a default one before the first.
Scope scope_at(const Timeline& timeline, std::uint64_t pos);

// Layer and tape marks apply to their thread, phase marks to the whole process.
class Scopes {
 public:
  Scopes(const Store& draft, NameTable& names);
  const Timeline* of_thread(std::uint32_t thread) const;
  const Timeline& process() const { return process_; }
  bool is_python(std::uint32_t thread) const { return python_.contains(thread); }  // it reported something
  // What the process does next after a position; NULL if nothing is reported.
  const Scope* process_after(std::uint64_t pos) const;
  // Where each backward pass starts, for the whole process.
  std::vector<std::uint64_t> backward_passes() const;
  // The end of the backward pass that contains a position; kNever if no pass or no end is reported.
  std::uint64_t backward_end(std::uint64_t pos) const;

 private:
  tsl::robin_map<std::uint32_t, Timeline> thread_;
  tsl::robin_set<std::uint32_t> python_;
  Timeline process_;
};

}  // namespace vramscope::analyze
