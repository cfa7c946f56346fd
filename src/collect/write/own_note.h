// A name kept in a small file of our own.
#pragma once

#include <filesystem>
#include <string>

namespace vramscope::collect {

// Replaces what the file contained. If that fails, nothing depends on it: a reader finds no name, or one that leads nowhere.
void write_own_note(const std::filesystem::path& note, const std::string& name);
// Empty if there is no such file of ours.
std::string read_own_note(const std::filesystem::path& note);

}  // namespace vramscope::collect
