#include "collect/sampler.h"

#include <algorithm>
#include <charconv>

namespace vramscope::collect {

namespace {
constexpr std::uint64_t kUrgentPeriodUs = 10'000;
constexpr std::size_t kLooksKept = 512;
}  // namespace

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
    if (!nvml_->memory(i, look.memory)) continue;
    look.processes_known = nvml_->processes(i, look.processes);
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

std::optional<DeviceLook> Sampler::before(std::size_t device, std::uint64_t time_us) const {
  if (device >= past_.size()) return std::nullopt;
  for (auto look = past_[device].rbegin(); look != past_[device].rend(); ++look)
    if (look->time_us < time_us) return *look;
  return std::nullopt;
}

std::optional<std::uint64_t> Sampler::used_without(std::size_t device, const DeviceIdentity& process) const {
  if (device >= past_.size()) return std::nullopt;
  for (auto look = past_[device].rbegin(); look != past_[device].rend(); ++look)
    if (!process.bytes(device, *look)) return look->memory.used;
  return std::nullopt;
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
