// Edits the events of a recording: blocks that are dropped, resized, inserted, or away for a while.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "analyze/whatif/recorded.h"

namespace vramscope::analyze {

// Positions are those of the events before all edits.
class Rewriter {
 public:
  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();  // a block that stays
  explicit Rewriter(RecordedPool& recorded);

  std::uint32_t blocks() const { return static_cast<std::uint32_t>(edits_.size()); }
  Bytes bytes(std::uint32_t block) const { return edits_[block].bytes; }
  std::size_t born(std::uint32_t block) const { return edits_[block].born; }
  std::size_t end(std::uint32_t block) const { return std::min(edits_[block].died, recorded_.events.size()); }
  bool lives_at(std::uint32_t block, std::size_t at) const { return edits_[block].born < at && edits_[block].died >= at; }
  // The end of the events if there is no such section.
  std::size_t first_event_of_section(std::uint32_t section) const;

  void drop(std::uint32_t block) { edits_[block].dropped = true; }
  void scale(std::uint32_t block, double factor);
  void insert(Shown category, Bytes bytes, std::size_t at, std::size_t until = kNever) {
    inserted_.push_back({at, until, bytes, category});
  }
  // The block is not there from one position to another.
  void suspend(std::uint32_t block, std::size_t from, std::size_t to);
  // The block is freed with the next allocation.
  void shorten(std::uint32_t block) { edits_[block].died = std::min(edits_[block].died, edits_[block].born + 2); }
  void apply();

 private:
  struct Edit {
    Bytes bytes = 0;
    std::size_t born = 0, died = 0;  // positions; died is behind the end for a block that is never freed
    std::size_t leaves = 0, returns = 0;
    bool dropped = false;
  };
  struct Inserted {
    std::size_t at, until;
    Bytes bytes;
    Shown category;
  };
  RecordedPool& recorded_;
  std::vector<Edit> edits_;
  std::vector<Inserted> inserted_;
};

}  // namespace vramscope::analyze
