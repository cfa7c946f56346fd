# A framework joins by having a folder with a framework.cpp, which defines its registration: `const Framework kFramework` in the
# namespace that is called like the folder. src/capture/<framework> runs in the user's process, src/analyze/attribute/<framework> outside.

# vs_frameworks_in(<folder> <variable>): the names of the frameworks whose folders are there.
function(vs_frameworks_in folder variable)
  file(GLOB found CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*/framework.cpp)
  list(SORT found)
  list(TRANSFORM found REPLACE "/framework.cpp$" "")
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# vs_framework_list(<capture or analyze> <file> <framework>...): writes the source file that defines frameworks() of that side.
function(vs_framework_list side file)
  vs_registered(${file} ${side}/framework.h vramscope::${side} Framework kFramework frameworks ${ARGN})
endfunction()
