// Why a source file is not shown, or what to know about the text that is shown.
#pragma once

#include <string>
#include <string_view>

#include "analyze/api.h"

namespace vramscope::analyze {

inline constexpr std::string_view kGiveSourceRoot =
    "Start the viewer with `--source-root DIR`, where DIR contains the program's source files.";
inline constexpr std::string_view kChangedSince = "The file was changed after the recording started: its lines may have moved.";

// Why the trace has no text of the file.
std::string why_no_text(const KeptSource& kept, const Overview& overview);
// What to know about the text in the trace; empty = nothing.
std::string_view about_kept(trace::SourceState state);

// The same for files in a folder that the user named.
std::string nor_in_folder(std::string_view why, std::string_view folder);
std::string not_shown_from(std::string_view folder);
std::string different_in(std::string_view folder);

}  // namespace vramscope::analyze
