// Reads /proc. For processes that are gone or not visible to us, every function returns nothing or false.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramscope::collect::proc {

using Pid = std::uint32_t;

// Start of the process in clock ticks since boot: together with the pid, it identifies a process; pids alone are reused.
std::optional<std::uint64_t> start_ticks(Pid pid);
// Gone or a zombie: no part of it runs any more.
bool is_dead(Pid pid);
// Dead or dying: it may already have released its files and devices.
bool is_exiting(Pid pid);
bool has_thread(Pid pid, std::uint32_t tid);
std::string thread_name(Pid pid, std::uint32_t tid);
// Whether the process maps a file whose path ends in `path_end`.
bool maps_file(Pid pid, std::string_view path_end);
// Processes that were started with this variable ("NAME=value") in their environment, as far as they are visible to us.
std::vector<Pid> with_variable(std::string_view variable);
std::uint64_t resident_bytes(Pid pid);
// The id of the process in each PID namespace that this /proc can see, outermost first.
std::vector<Pid> namespace_pids(Pid pid);
// NVML reports pids of the initial namespace; in any other one they are useless to us.
bool in_initial_pid_namespace();

// The whole contents of a small file; empty if it cannot be read.
std::string read_file(const std::string& path);

}  // namespace vramscope::collect::proc
