#include "collect/sample/sampler.h"

#include <algorithm>
#include <charconv>

namespace vramscope::collect {

namespace {
constexpr std::uint64_t kUrgentPeriodUs = 10'000;
constexpr std::size_t kReadingsKept = 512;

bool same(const DeviceProcess& a, const DeviceProcess& b) { return a.pid == b.pid && a.bytes == b.bytes; }

// Memory and process list are two calls: repeated while the memory changes between them.
bool take(const Nvml& nvml, std::size_t device, DeviceReading& reading) {
  constexpr int kAttempts = 3;
  if (!nvml.memory(device, reading.memory)) return false;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint64_t used = reading.memory.used;
    reading.processes_known = nvml.processes(device, reading.processes);
    if (!nvml.memory(device, reading.memory)) return false;
    if (reading.memory.used == used) break;
  }
  return true;
}
}  // namespace

std::optional<std::uint64_t> DeviceReading::unattributed() const {
  if (!processes_known) return std::nullopt;
  std::uint64_t rest = memory.used;
  for (const DeviceProcess& process : processes) {
    if (process.bytes == kNotIdentifiable) return std::nullopt;
    rest -= std::min(rest, process.bytes);
  }
  return rest;
}

DeviceIdentity::DeviceIdentity(proc::Pid pid, std::vector<std::set<proc::Pid>> before, DriverPids driver_pids)
    : before_(std::move(before)) {
  if (driver_pids == DriverPids::foreign) return;
  for (proc::Pid each : proc::namespace_pids(pid)) numbers_.insert(each);
  numbers_.insert(pid);
}

void DeviceIdentity::context_recorded(std::size_t device, std::uint64_t last_sample_us) {
  last_sample_without_.try_emplace(device, last_sample_us);
}

std::vector<DeviceProcess> DeviceIdentity::newcomers(std::size_t device, const DeviceReading& reading) const {
  std::vector<DeviceProcess> out;
  for (const DeviceProcess& process : reading.processes)
    if (device >= before_.size() || !before_[device].contains(process.pid)) out.push_back(process);
  return out;
}

// Decided once per device, at the first sample that must list the process: earlier, the only newcomer may be another process,
// and later, the process may have left the device before the other one.
void DeviceIdentity::learn(std::size_t device, const DeviceReading& reading) {
  constexpr int kSamplesUntilListed = 3;  // for a device that lists a new process with delay
  if (is_known() || is_hidden(device) || !reading.processes_known) return;
  const auto context = last_sample_without_.find(device);
  if (context == last_sample_without_.end() || reading.time_us <= context->second) return;
  const auto came = newcomers(device, reading);
  if (came.size() == 1)
    numbers_.insert(came.front().pid);
  else if (!came.empty() || ++samples_without_newcomer_[device] == kSamplesUntilListed)
    hidden_.insert(device);
}

std::optional<std::uint64_t> DeviceIdentity::bytes(std::size_t device, const DeviceReading& reading) const {
  if (!reading.processes_known) return kNotIdentifiable;
  if (!is_known()) return newcomers(device, reading).empty() ? std::nullopt : std::optional(kNotIdentifiable);
  for (const DeviceProcess& process : reading.processes)
    if (numbers_.contains(process.pid)) return process.bytes;
  return std::nullopt;
}

bool Sampler::sample(std::uint64_t now_us, bool urgent) {
  if (hz_ <= 0) return false;
  const auto ordinary = static_cast<std::uint64_t>(1e6 / hz_);
  const std::uint64_t period = urgent ? std::min(kUrgentPeriodUs, ordinary) : ordinary;
  if (last_us_ != 0 && now_us - last_us_ < period) return false;
  if (nvml_ == nullptr) {
    nvml_ = std::make_unique<Nvml>();
    for (std::size_t i = 0; i < nvml_->devices(); ++i) uuids_.push_back(nvml_->uuid(i));
  }
  std::vector<std::optional<DeviceReading>> readings;
  for (std::size_t i = 0; i < nvml_->devices(); ++i) {
    DeviceReading reading;
    reading.time_us = now_us;
    readings.push_back(take(*nvml_, i, reading) ? std::optional(std::move(reading)) : std::nullopt);
  }
  keep(now_us, std::move(readings));
  return true;
}

void Sampler::keep(std::uint64_t now_us, std::vector<std::optional<DeviceReading>> readings) {
  last_us_ = now_us;
  now_.resize(readings.size());
  past_.resize(readings.size());
  for (std::size_t i = 0; i < readings.size(); ++i) {
    if (!readings[i]) continue;
    now_[i] = *readings[i];
    if (past_[i].size() == kReadingsKept) past_[i].erase(past_[i].begin(), past_[i].begin() + kReadingsKept / 2);
    past_[i].push_back(*std::move(readings[i]));
  }
  if (!at_start_.empty()) return;
  for (const DeviceReading& reading : now_) {
    at_start_.emplace_back();
    for (const DeviceProcess& process : reading.processes) at_start_.back().insert(process.pid);
  }
}

// A process takes memory a moment before the device lists it: of the samples with the same other processes, the one with the
// least in use.
std::optional<DeviceReading> Sampler::without(std::size_t device, const DeviceIdentity& process) const {
  const DeviceReading* found = nullptr;
  if (device >= past_.size()) return std::nullopt;
  for (auto reading = past_[device].rbegin(); reading != past_[device].rend(); ++reading) {
    if (process.bytes(device, *reading)) continue;
    if (found != nullptr && !std::ranges::equal(reading->processes, found->processes, same)) break;
    if (found == nullptr || reading->memory.used < found->memory.used) found = &*reading;
  }
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

DeviceIdentity Sampler::identify(proc::Pid pid) const { return {pid, at_start_, driver_pids_}; }

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
