// A stream of allocations like those of a training step that repeats: forward, backward, optimizer, with a best-fit pool.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "trace/writer.h"

namespace vramscope::bench {

// Hands out the smallest free block that fits and the lowest of those, splits and merges: what TensorFlow's BFC does, without
// bins.
class BestFit {
 public:
  explicit BestFit(std::uint64_t bytes) { give(kBase, bytes); }

  std::uint64_t take(std::uint64_t bytes) {
    const auto found = by_size_.lower_bound({bytes, 0});
    const auto [size, address] = *found;
    by_size_.erase(found);
    by_address_.erase(address);
    // A rest that is small against the block stays with it.
    const bool split = size >= 2 * bytes || size - bytes >= (1u << 20);
    if (split) give(address + bytes, size - bytes);
    taken_[address] = split ? bytes : size;
    return address;
  }
  std::uint64_t size(std::uint64_t address) const { return taken_.at(address); }
  void free(std::uint64_t address) {
    const auto taken = taken_.find(address);
    std::uint64_t size = taken->second;
    taken_.erase(taken);
    if (const auto next = by_address_.find(address + size); next != by_address_.end()) {
      size += next->second;
      forget(next);
    }
    if (auto before = by_address_.lower_bound(address); before != by_address_.begin()) {
      --before;
      if (before->first + before->second == address) {
        address = before->first;
        size += before->second;
        forget(before);
      }
    }
    give(address, size);
  }

 private:
  static constexpr std::uint64_t kBase = 0x7f3a40000000;
  using ByAddress = std::map<std::uint64_t, std::uint64_t>;
  void give(std::uint64_t address, std::uint64_t size) {
    by_address_[address] = size;
    by_size_.insert({size, address});
  }
  void forget(ByAddress::iterator block) {
    by_size_.erase({block->second, block->first});
    by_address_.erase(block);
  }

  ByAddress by_address_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;
  ByAddress taken_;
};

struct Op {
  trace::SiteId site;
  std::uint64_t bytes;
};
struct Ops {  // by layer
  std::vector<std::vector<Op>> forward, backward;
};

inline Op make_op(trace::Writer& writer, trace::PoolId pool, std::uint64_t layer, const char* word, std::uint64_t bytes,
                  std::uint64_t i) {
  const auto op = writer.string("model/layer_" + std::to_string(layer) + "/" + word + std::to_string(i));
  const auto frame = writer.frame({op, writer.string("model.py"), layer * 20 + i, 0, {}});
  const auto stack = writer.stack(layer * 1000 + i + 1 + static_cast<std::uint64_t>(word[0]) * 1000000, std::vector{frame});
  return {
      writer.site(
          {pool, bytes, op, writer.string("output"), 1, writer.string("[" + std::to_string(bytes / 4) + "]"), stack, 0, {}, 0}),
      bytes};
}

inline Ops make_ops(trace::Writer& writer, trace::PoolId pool, std::mt19937_64& random, std::uint64_t layers) {
  Ops out{std::vector<std::vector<Op>>(layers), std::vector<std::vector<Op>>(layers)};
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    for (std::uint64_t i = 0; i < 9; ++i)
      out.forward[layer].push_back(make_op(writer, pool, layer, "fwd", 4 * (random() % (1 << (8 + random() % 14))) + 4, i));
    for (std::uint64_t i = 0; i < 12; ++i)
      out.backward[layer].push_back(make_op(writer, pool, layer, "grad", 4 * (random() % (1 << (8 + random() % 14))) + 4, i));
  }
  return out;
}

// Writes at least `events` events of repeated steps. Ops finish in slightly different order each time, as on a thread pool.
inline void write_training(trace::Writer& writer, std::uint64_t events, std::uint64_t layers = 120) {
  using trace::At;
  std::mt19937_64 random(1);
  BestFit memory(std::uint64_t{64} << 30);
  const auto pool =
      writer.pool({writer.string("GPU_0_bfc"), 0, trace::Level::tensor, trace::Memory::device, trace::Framework::tensorflow});
  std::vector<trace::ThreadId> threads;
  for (std::uint64_t i = 0; i < 4; ++i) threads.push_back(writer.thread({100 + i, writer.string("worker")}));
  const Ops ops_by_layer = make_ops(writer, pool, random, layers);
  std::uint64_t seq = 0;
  double time = 0;
  std::exponential_distribution<double> gap(1.0 / 4.0);
  std::int64_t step = 0;
  const auto at = [&] {
    return At{++seq, static_cast<std::uint64_t>(time += gap(random)),
              threads[random() % 100 < 85 ? 0 : random() % threads.size()]};
  };
  const auto take = [&](const Op& op) {
    const std::uint64_t address = memory.take((op.bytes + 255) / 256 * 256);
    writer.alloc(at(), {op.site, address, memory.size(address), step});
    return address;
  };
  const auto give = [&](std::uint64_t address) {
    memory.free(address);
    writer.free(at(), pool, address, 0);
  };
  while (seq < events) {
    step = static_cast<std::int64_t>(random());
    std::vector<std::uint64_t> kept;
    const auto run = [&](std::vector<Op> ops, std::size_t keep) {
      if (random() % 4 == 0) std::swap(ops[random() % ops.size()], ops[random() % ops.size()]);
      std::vector<std::uint64_t> temporary;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        const std::uint64_t address = take(ops[i]);
        if (i < keep) {
          kept.push_back(address);
        } else {
          temporary.push_back(address);
        }
        if (temporary.size() > 2) {
          give(temporary.front());
          temporary.erase(temporary.begin());
        }
      }
      for (const std::uint64_t address : temporary) give(address);
    };
    for (const auto& ops : ops_by_layer.forward) run(ops, 3);
    for (std::size_t i = ops_by_layer.backward.size(); i-- > 0;) {
      run(ops_by_layer.backward[i], 0);
      for (int n = 0; n < 3; ++n) {
        give(kept.back());
        kept.pop_back();
      }
    }
  }
}

}  // namespace vramscope::bench
