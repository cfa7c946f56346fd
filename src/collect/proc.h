// What /proc says about a process. Every function answers for processes that are gone or not ours to see: nothing, or false.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramscope::collect::proc {

using Pid = std::uint32_t;

// Start of the process in clock ticks since boot: with the pid it names a process for good, pids alone come again.
std::optional<std::uint64_t> start_ticks(Pid pid);
// Gone or a zombie: nothing of it runs any more.
bool is_dead(Pid pid);
bool has_thread(Pid pid, std::uint32_t tid);
std::string thread_name(Pid pid, std::uint32_t tid);
// Some mapping of the process is of a file whose path ends in `path_end`.
bool maps_file(Pid pid, std::string_view path_end);
// Processes that were started with this variable ("NAME=value") in their environment, as far as we may see.
std::vector<Pid> with_variable(std::string_view variable);
std::uint64_t resident_bytes(Pid pid);
// The process' id in each PID namespace that this /proc can see, outermost first.
std::vector<Pid> namespace_pids(Pid pid);
// NVML speaks of pids in the initial namespace; elsewhere they mean nothing to us.
bool in_initial_pid_namespace();

// Whole contents of a small file, empty if it cannot be read.
std::string read_file(const std::string& path);

}  // namespace vramscope::collect::proc
