#include "whatif/replay/device.h"

#include <algorithm>

namespace vramscope::whatif {
namespace {

// Each piece gets a terabyte of addresses, so that pieces never overlap.
constexpr unsigned kPieceBits = 40;
constexpr std::uint64_t kPieces = std::uint64_t{1} << 24;

// A permutation of the numbers below kPieces that depends on the seed: a Feistel network with four rounds.
std::uint64_t shuffled(std::uint64_t number, std::uint64_t seed) {
  std::uint64_t left = number >> 12, right = number & 0xfff;
  for (std::uint64_t round = 1; round <= 4; ++round) {
    const std::uint64_t mixed = (right ^ seed * 0x9e3779b97f4a7c15u ^ round << 32) * 0xbf58476d1ce4e5b9u;
    const std::uint64_t next = left ^ (mixed >> 40 & 0xfff);
    left = right;
    right = next;
  }
  return left << 12 | right;
}

}  // namespace

Device::Device(const DeviceOptions& options) : options_(options) {
  options_.capacity = std::min(options_.capacity, kLargestDevice);
  options_.total = std::min(options_.total, kLargestDevice);
}

const DeviceCall* Device::expected() const {
  const std::uint64_t position = taken_ + returned_;
  return !differs_at_ && position < options_.recorded.size() ? &options_.recorded[position] : nullptr;
}

std::uint64_t Device::recorded_or(std::uint64_t address) const {
  const DeviceCall* const call = expected();
  return call != nullptr && !call->returned ? call->address : address;
}

std::uint64_t Device::reserve_addresses() {
  const std::uint64_t number = ++addresses_ % kPieces;
  return (options_.seed == 0 ? number : shuffled(number, options_.seed)) << kPieceBits;
}

void Device::log(const DeviceCall& call) {
  const DeviceCall* const recorded = expected();
  if (!options_.recorded.empty() && !differs_at_ && (recorded == nullptr || *recorded != call)) differs_at_ = taken_ + returned_;
  ++(call.returned ? returned_ : taken_);
  if (options_.keep_calls) calls_.push_back(call);
}

bool Device::reserve(Bytes bytes) {
  if (bytes > options_.capacity || used_ > options_.capacity - bytes) return false;
  used_ += bytes;
  return true;
}

std::optional<std::uint64_t> Device::take(Bytes bytes) {
  if (!reserve(bytes)) return std::nullopt;
  const std::uint64_t address = recorded_or(reserve_addresses());
  log({false, address, bytes});
  return address;
}

void Device::give_back(std::uint64_t address, Bytes bytes) {
  used_ -= bytes;
  log({true, address, bytes});
}

bool Device::map(std::uint64_t address, Bytes bytes) {
  if (!reserve(bytes)) return false;
  log({false, address, bytes});
  return true;
}

}  // namespace vramscope::whatif
