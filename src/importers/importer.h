// How a foreign profile joins `vramscope import`: one file formats/<name>.cpp, found by the build, that defines
//
//   namespace vramscope::importers::<name> { extern const Importer kImporter; const Importer kImporter{...}; }
//
// An importer opens no file and runs nothing that it reads. The profile is hostile: no number in it may size a table or a loop.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "importers/profile.h"
#include "support/result.h"

namespace vramscope::importers {

struct Importer {
  std::string_view name;   // of the format, stored in the trace: "torch-snapshot"
  std::string_view title;  // in a sentence: "a PyTorch memory snapshot"
  // Whether the bytes look like this format; formats do not overlap.
  bool (*recognizes)(std::string_view bytes) = nullptr;
  // An error says what is wrong, without the name of the file.
  Status (*read)(std::string_view bytes, Profile& into) = nullptr;
};

// All of them, by name.
std::span<const Importer* const> importers();

// The importer for these bytes; null if there is none.
const Importer* importer_for(std::string_view bytes);

// Reads a file, unpacks it if it is gzip, and finds its importer. An error names the file.
struct Opened {
  std::string bytes;
  const Importer* importer = nullptr;
};
Result<Opened> open_profile(const std::filesystem::path& file);

// Whether the file is worth trying: a regular file that is not a trace of ours.
bool is_foreign(const std::filesystem::path& file);

// Imports into a new trace, which must not exist.
Status import_file(const std::filesystem::path& file, const std::filesystem::path& trace);

}  // namespace vramscope::importers
