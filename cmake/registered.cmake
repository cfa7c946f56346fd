# Parts that join by being there: each defines `const TYPE NAME` in a namespace that is called like it, and a list of all of them is
# written by the build. Objects that register themselves when the program starts would be left out by the linker of a static library.

# vs_registered(<file> <header> <namespace> <type> <name> <function> <part>...)
function(vs_registered file header namespace type name function)
  set(declared "")
  set(listed "")
  foreach(part ${ARGN})
    string(APPEND declared "namespace ${part} {\nextern const ${type} ${name};\n}\n")
    string(APPEND listed "&${part}::${name}, ")
  endforeach()
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[// Written by cmake/registered.cmake.
#include "@header@"

namespace @namespace@ {
@declared@
std::span<const @type@* const> @function@() {
  static constexpr const @type@* kAll[] = {@listed@};
  return kAll;
}
}  // namespace @namespace@
]])
endfunction()
