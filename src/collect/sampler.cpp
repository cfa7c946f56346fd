#include "collect/sampler.h"

#include <algorithm>
#include <charconv>

namespace vramscope::collect {

namespace {
constexpr std::uint64_t kUrgentPeriodUs = 10'000;
constexpr std::size_t kLooksKept = 512;

bool same(const DeviceProcess& a, const DeviceProcess& b) { return a.pid == b.pid && a.bytes == b.bytes; }

// Memory and process list are two calls: taken again while the memory changes between them.
bool take(const Nvml& nvml, std::size_t device, DeviceLook& look) {
  constexpr int kAttempts = 3;
  if (!nvml.memory(device, look.memory)) return false;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint64_t used = look.memory.used;
    look.processes_known = nvml.processes(device, look.processes);
    if (!nvml.memory(device, look.memory)) return false;
    if (look.memory.used == used) break;
  }
  return true;
}
}  // namespace

std::optional<std::uint64_t> DeviceLook::unattributed() const {
  if (!processes_known) return std::nullopt;
  std::uint64_t rest = memory.used;
  for (const DeviceProcess& process : processes) {
    if (process.bytes == kNotIdentifiable) return std::nullopt;
    rest -= std::min(rest, process.bytes);
  }
  return rest;
}

DeviceIdentity::DeviceIdentity(proc::Pid pid, std::vector<std::set<proc::Pid>> before)
    : before_(std::move(before)), namesake_(proc::in_initial_pid_namespace()) {
  for (proc::Pid each : proc::namespace_pids(pid)) pids_.insert(each);
  pids_.insert(pid);
}

std::optional<std::uint64_t> DeviceIdentity::bytes(std::size_t device, const DeviceLook& look) const {
  if (!look.processes_known) return kNotIdentifiable;
  const auto told = [](const DeviceProcess& process) { return process.bytes; };
  if (namesake_) {
    for (const DeviceProcess& process : look.processes)
      if (pids_.contains(process.pid)) return told(process);
    return std::nullopt;
  }
  // In a container the list shows foreign numbers: we are the one that came after us, if only one did.
  const DeviceProcess* only = nullptr;
  for (const DeviceProcess& process : look.processes) {
    if (device < before_.size() && before_[device].contains(process.pid)) continue;
    if (only != nullptr) return kNotIdentifiable;
    only = &process;
  }
  return only != nullptr ? std::optional(told(*only)) : std::nullopt;
}

bool Sampler::look(std::uint64_t now_us, bool urgent) {
  if (hz_ <= 0) return false;
  const auto ordinary = static_cast<std::uint64_t>(1e6 / hz_);
  const std::uint64_t period = urgent ? std::min(kUrgentPeriodUs, ordinary) : ordinary;
  if (last_us_ != 0 && now_us - last_us_ < period) return false;
  if (nvml_ == nullptr) {
    nvml_ = std::make_unique<Nvml>();
    now_.resize(nvml_->devices());
    past_.resize(nvml_->devices());
    for (std::size_t i = 0; i < nvml_->devices(); ++i) uuids_.push_back(nvml_->uuid(i));
  }
  last_us_ = now_us;
  for (std::size_t i = 0; i < now_.size(); ++i) {
    DeviceLook look;
    look.time_us = now_us;
    if (!take(*nvml_, i, look)) continue;
    now_[i] = look;
    if (past_[i].size() == kLooksKept) past_[i].erase(past_[i].begin(), past_[i].begin() + kLooksKept / 2);
    past_[i].push_back(std::move(look));
  }
  if (at_start_.empty())
    for (const DeviceLook& look : now_) {
      at_start_.emplace_back();
      for (const DeviceProcess& process : look.processes) at_start_.back().insert(process.pid);
    }
  return true;
}

// A process takes memory a moment before the device lists it: of the looks with the same others, the one with the least in use.
std::optional<DeviceLook> Sampler::without(std::size_t device, const DeviceIdentity& process) const {
  const DeviceLook* found = nullptr;
  if (device >= past_.size()) return std::nullopt;
  for (auto look = past_[device].rbegin(); look != past_[device].rend(); ++look) {
    if (process.bytes(device, *look)) continue;
    if (found != nullptr && !std::ranges::equal(look->processes, found->processes, same)) break;
    if (found == nullptr || look->memory.used < found->memory.used) found = &*look;
  }
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

DeviceIdentity Sampler::identify(proc::Pid pid) const { return {pid, at_start_}; }

std::size_t Sampler::device_index(std::int64_t ordinal, const std::string& visible) const {
  const auto plain = static_cast<std::size_t>(std::max<std::int64_t>(ordinal, 0));
  std::size_t at = 0;
  for (std::size_t skipped = 0; skipped < plain; ++skipped) {
    at = visible.find(',', at);
    if (at == std::string::npos) return plain;
    ++at;
  }
  const std::string entry = visible.substr(std::min(at, visible.size()), visible.find(',', at) - at);
  for (std::size_t i = 0; i < uuids_.size(); ++i)
    if (!entry.empty() && uuids_[i].starts_with(entry)) return i;
  std::size_t index = plain;
  std::from_chars(entry.data(), entry.data() + entry.size(), index);
  return index;
}

}  // namespace vramscope::collect
