// The separate file with the debug information of an ELF file, as .gnu_debuglink names it.
#pragma once

#include <elfutils/libdwfl.h>

namespace vramscope::symbolize {

// A Dwfl_Callbacks::find_debuginfo that opens regular files only, asks no server, and looks where gdb does: by build id, next to
// the file, in its folder .debug, and below /usr/lib/debug. The standard one waits for a FIFO forever.
int find_debug_file(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base, const char* file_name, const char* link,
                    GElf_Word checksum, char** found);

// Whether libdw may read `module`: the file that its debug information shares with others (.gnu_debugaltlink), which libdw opens
// by itself, is not a FIFO or a device.
bool shared_part_is_regular(Dwfl_Module* module);

}  // namespace vramscope::symbolize
