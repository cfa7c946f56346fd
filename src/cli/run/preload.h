// How the recorder gets into a program alongside other preloaded libraries.
#pragma once

#include <string>

namespace vramscope::cli {

// LD_PRELOAD with our library added once. The existing value is kept (NULL: none). Ours comes first, except for the runtimes of
// sanitizers, some of which insist on that position.
std::string preload_with(const char* before, const std::string& library);

// ASAN_OPTIONS for a program that is linked with the shared runtime of the address sanitizer: it must accept that a preloaded
// library comes before it. The library does the same for programs that set another ASAN_OPTIONS on the way.
std::string asan_options_with(const char* before);

}  // namespace vramscope::cli
