// Joins the small chunks of a recording that has ended.
//
// While a program runs, a chunk is written every second, so that a crash costs no more than that. The chunks of a slow program
// are small, and a chunk of a few hundred events takes twice as many bytes per event as one of 64 Ki: each has its own head,
// dictionaries and compression.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "support/file.h"
#include "support/result.h"
#include "trace/footer.h"
#include "trace/gen/schema.h"

namespace vramscope::trace {

// Many small chunks, none of them thinned, and not so many events that the end of the program would be delayed.
bool worth_compacting(std::span<const IndexEntry> blocks);

struct Compacted {
  std::unique_ptr<support::AppendFile> file;
  std::vector<IndexEntry> index;
};
// Rewrites the file next to the old one and replaces it atomically; the footer is still to be written. After an error, the old
// file is unchanged.
Result<Compacted> compact(const std::filesystem::path& path, const Dictionaries& all, std::span<const IndexEntry> blocks);

}  // namespace vramscope::trace
