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
#include "importers/source.h"
#include "support/result.h"

namespace vramscope::importers {

struct Importer {
  std::string_view name;   // of the format, stored in the trace: "torch-snapshot"
  std::string_view title;  // in a sentence: "a PyTorch memory snapshot"
  // Whether the bytes look like this format; formats do not overlap. With `stream`, these are the first kHead bytes at most.
  bool (*recognizes)(std::string_view bytes) = nullptr;
  // One of the two. An error says what is wrong, without the name of the file.
  Status (*read)(std::string_view bytes, Profile& into) = nullptr;
  Status (*stream)(Source& source, Profile& into) = nullptr;
};

inline constexpr std::size_t kHead = 64;

// All of them, by name.
std::span<const Importer* const> importers();

// The importer for these bytes; null if there is none.
const Importer* importer_for(std::string_view bytes);

// Finds the importer of a file; reads it, and unpacks it if it is gzip, unless it can be streamed. An error names the file.
struct Opened {
  support::ReadFile file;
  std::string bytes;
  const Importer* importer = nullptr;
  bool streamed = false;  // from the file; there are no bytes

  Status read(Profile& into);
};
Result<Opened> open_profile(const std::filesystem::path& file);

// What a file may be, by its first bytes. Whatever cannot be read as a regular file is left to the reader of traces.
enum class Looks : std::uint8_t { ours, foreign, packed };
Looks looks_of(const std::filesystem::path& file);

// Imports into a new trace, which must not exist.
Status import_file(const std::filesystem::path& file, const std::filesystem::path& trace);

}  // namespace vramscope::importers
