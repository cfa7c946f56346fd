// What the formats with a time axis show: Chrome trace, Perfetto, SVG.
#pragma once

#include <string>
#include <vector>

#include "exporters/format.h"

namespace vramscope::exporters {

struct Timeline {
  struct Track {
    analyze::Place place;
    analyze::Stacked stacked;          // by category; each column is the state at its highest instant, so that the peak is in it
    std::vector<bool> used;            // by group: whether it ever has a byte
    std::vector<std::size_t> columns;  // those that differ from the one before
  };
  std::string program;
  std::int64_t rank = 0;
  std::uint64_t start_realtime_us = 0, duration_us = 0;
  std::vector<Track> places;
  std::vector<analyze::Step> steps;
  std::vector<analyze::Phase> phases;
  std::vector<analyze::OomEvent> ooms;
  std::vector<analyze::Sample> samples;
  std::vector<analyze::Block> largest;  // of the main place

  std::string title() const;                             // of the process
  std::string title(const analyze::Block& block) const;  // what it is, in a few words
  std::uint64_t end_of(const analyze::Block& block) const {
    return block.death == analyze::kNever ? duration_us : block.death_us;
  }
};

// Columns of each track at most.
inline constexpr std::uint32_t kColumns = 16'000;

// "GPU 0 used on the card": the track of a sample.
std::string track_of(const analyze::Sample& sample);

Result<Timeline> timeline_of(const Request& request, std::uint32_t columns = kColumns);

}  // namespace vramscope::exporters
