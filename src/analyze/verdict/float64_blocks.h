// Which blocks hold float64. The allocator knows the type of an op's result; that of scratch memory, of a variable and of an
// array that Python converts follows from the op, from the report about the variable, and from everything else in the program.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/index/store.h"

namespace vramscope::analyze {

class Float64Blocks {
 public:
  explicit Float64Blocks(const Store& store);
  bool contains(std::uint64_t alloc) const {
    const std::uint32_t kind = store_.kind[alloc];
    return (kind < wide_kind_.size() && wide_kind_[kind] != 0) || is_wide_variable(alloc);
  }

 private:
  bool is_wide_variable(std::uint64_t alloc) const;

  const Store& store_;
  std::vector<char> wide_kind_;                  // by kind
  std::vector<trace::StringId> wide_variables_;  // names, sorted
};

}  // namespace vramscope::analyze
