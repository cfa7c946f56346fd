#include "analyze/attribute/python_side.h"

#include <fmt/format.h>

#include "analyze/framework.h"

namespace vramscope::analyze {

std::string unwatched_frameworks(const std::function<std::string(std::string_view)>& setting) {
  std::string names;
  for (const Framework* framework : frameworks())
    if (setting(fmt::format("python_side.{}", framework->word)) == "absent")
      names += fmt::format("{}{}", names.empty() ? "" : " and ", framework->name);
  return names;
}

std::string without_python_side(const std::string& frameworks) {
  if (frameworks.empty()) return {};
  return fmt::format("recorded without the Python hooks for {}: steps, layers and names are missing, and categories are guesses",
                     frameworks);
}

}  // namespace vramscope::analyze
