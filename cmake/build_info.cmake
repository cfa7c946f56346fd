# Writes the source file from which `vramscope --version` prints the commit and the build. Run at every build; a file that stays the same is not
# touched, so that nothing is built again for it. No date, no path, no host: the same commit gives the same program.
#   cmake -DSOURCE=... -DOUTPUT=... -DBUILD=... -P build_info.cmake
set(commit "unknown")
if(EXISTS ${SOURCE}/commit.txt) # a source distribution
  file(STRINGS ${SOURCE}/commit.txt commit LIMIT_COUNT 1)
elseif(EXISTS ${SOURCE}/.git) # not some repository around an unpacked archive
  execute_process(COMMAND git -C ${SOURCE} describe --always --exclude=* --abbrev=12 --dirty=+changes
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    set(commit ${described})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "cli/build_info.h"

namespace vramscope::cli {

const char* build_info() { return "commit @commit@, @BUILD@"; }

}  // namespace vramscope::cli
]])
