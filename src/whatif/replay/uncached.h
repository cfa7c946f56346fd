// No cache at all: each block is a call of the driver, which puts up to 1 MiB into shared slabs of 2 MiB and rounds the rest up.
#pragma once

#include <algorithm>
#include <vector>

#include "whatif/replay/allocator.h"

namespace vramscope::whatif {

inline constexpr Bytes kDriverSlab = Bytes{2} << 20;  // of the CUDA driver, as measured on an H200

class Uncached final : public Allocator {
 public:
  explicit Uncached(const DeviceOptions& device) : Allocator(device) {}

  bool allocate(const Event& request) override {
    if (request.block >= owned_.size()) owned_.resize(request.block + 1 + request.block / 2);
    const bool small = request.bytes <= kSlab / 2;
    const Bytes unit = small ? kQuantum : kSlab;
    const Bytes bytes = std::max(unit, (request.bytes + unit - 1) / unit * unit);
    const Bytes slabs = small ? slabs_for(small_ + bytes) - slabs_for(small_) : bytes;
    if (slabs != 0 && !device_.take(slabs)) {
      ++counters_.failures;
      owned_[request.block] = 0;
      return false;
    }
    if (small) small_ += bytes;
    owned_[request.block] = bytes;
    count_allocated(bytes);
    count_reserved(slabs);
    return true;
  }

  void free(std::uint32_t block) override {
    const Bytes bytes = block < owned_.size() ? owned_[block] : 0;
    if (bytes == 0) return;
    owned_[block] = 0;
    counters_.allocated -= bytes;
    Bytes slabs = bytes;
    if (bytes <= kSlab / 2) {
      slabs = slabs_for(small_) - slabs_for(small_ - bytes);
      small_ -= bytes;
    }
    if (slabs == 0) return;
    device_.give_back(0, slabs);
    counters_.reserved -= slabs;
  }

  std::uint64_t address_of(std::uint32_t /*block*/) const override { return 0; }

 private:
  static constexpr Bytes kSlab = kDriverSlab, kQuantum = 512;
  static Bytes slabs_for(Bytes small) { return (small + kSlab - 1) / kSlab * kSlab; }
  Bytes small_ = 0;
  std::vector<Bytes> owned_;  // size by block number
};

}  // namespace vramscope::whatif
