// A free refers to its allocation by the ordinal that it had in the recording. If chunks were thinned, lost or damaged, those
// have gaps; readers of a trace see the ordinals of the alloc events that the file still contains, without gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vramscope::trace {

class OrdinalMap {
 public:
  // The next chunk: its allocations have the recording's ordinals first, first + 1, ..., or the listed ones if it is thinned.
  void add(std::uint64_t first, std::uint32_t allocs, bool thinned, std::vector<std::uint64_t> listed);

  std::uint64_t allocs() const { return total_; }
  std::uint64_t first(std::size_t chunk) const { return chunks_[chunk].dense; }
  // Replaces ordinals of the recording by those of the file; kNone for an allocation that the file does not contain.
  void translate(std::span<std::uint64_t> ordinals) const;

 private:
  struct Range {
    std::uint64_t first;  // in the recording
    std::uint64_t dense;  // in the file
    std::uint32_t allocs;
    bool thinned;
    std::vector<std::uint64_t> listed;
  };
  std::uint64_t find(std::uint64_t ordinal) const;

  std::vector<Range> chunks_;
  std::uint64_t total_ = 0;
  bool same_ = true;  // no gaps so far: nothing to translate
  bool ordered_ = true;
};

}  // namespace vramscope::trace
