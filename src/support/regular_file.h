// Opening a file where others may have put something else.
#pragma once

#include <sys/stat.h>

namespace vramscope::support {

// Opens a regular file, and nothing else, without waiting; `info` is about what was opened. `flags` as for open(2): with
// O_NOFOLLOW, a link in its place is rejected like a pipe. Returns -1 and sets errno: EISDIR for a folder, EINVAL for anything
// else that is not a regular file.
int open_regular(int folder, const char* path, int flags, struct stat& info);

}  // namespace vramscope::support
