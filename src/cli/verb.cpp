#include "cli/verb.h"

#include <algorithm>

namespace vramscope::cli {

namespace {

// Filled by static objects of other files: a function's static is ready whenever they are constructed.
std::vector<Verb>& registry() {
  static std::vector<Verb> all;
  return all;
}

}  // namespace

Register::Register(const Verb& verb) { registry().push_back(verb); }

std::vector<Verb> verbs() {
  std::vector<Verb> all = registry();
  std::sort(all.begin(), all.end(),
            [](const Verb& a, const Verb& b) { return a.group != b.group ? a.group < b.group : a.name < b.name; });
  return all;
}

}  // namespace vramscope::cli
