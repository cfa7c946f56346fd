#include "support/python_paths.h"

#include <algorithm>
#include <array>

namespace vramscope::support {

bool is_installed_python(std::string_view file) {
  constexpr std::array<std::string_view, 5> kPlaces = {"/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3",
                                                       "/python/vramscope/"};
  return std::ranges::any_of(kPlaces, [&](std::string_view place) { return file.find(place) != std::string_view::npos; });
}

bool is_generated_python(std::string_view file) {
  constexpr std::size_t kHash = 52;
  const std::string_view name = file.substr(file.rfind('/') + 1);
  const auto of_hash = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7'); };
  return name.size() == kHash + 3 && name.ends_with(".py") && std::ranges::all_of(name.substr(0, kHash), of_hash);
}

}  // namespace vramscope::support
