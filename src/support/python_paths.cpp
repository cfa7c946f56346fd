#include "support/python_paths.h"

#include <algorithm>
#include <array>

namespace vramscope::support {

bool is_installed_python(std::string_view file) {
  constexpr std::array<std::string_view, 5> kPlaces = {"/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3",
                                                       "/python/vramscope/"};
  return std::ranges::any_of(kPlaces, [&](std::string_view place) { return file.find(place) != std::string_view::npos; });
}

}  // namespace vramscope::support
