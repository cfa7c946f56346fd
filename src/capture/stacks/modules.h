// Which file a machine address belongs to.
#pragma once

#include <cstdint>

namespace vramscope::stacks {

// Content hash of an address: build id and offset in the file, the same in every run. Defines the module in the spool on first
// use in this generation of the spool. 0 for an address outside all files.
std::uint64_t native_hash(std::uint64_t address, std::uint64_t generation);

}  // namespace vramscope::stacks
