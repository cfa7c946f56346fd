// Where this program comes from. cmake/build_info.cmake writes the answer into the build folder.
#pragma once

namespace vramscope::cli {

// "commit 0123456789ab, Release, GNU 12.2.0, glibc 2.28 or newer"; "+changes" after a commit with uncommitted changes on top.
const char* build_info();

}  // namespace vramscope::cli
