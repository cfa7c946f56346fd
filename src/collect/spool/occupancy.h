// Which of a fixed number of slots are taken, with fast access to the next one: a bit per slot, and a bit per 64 of those.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vramscope::collect {

class Occupancy {
 public:
  explicit Occupancy(std::size_t slots) : size_(slots), words_(slots / 64 + 1), groups_(words_.size() / 64 + 1) {}

  void set(std::size_t slot) {
    words_[slot / 64] |= std::uint64_t{1} << slot % 64;
    groups_[slot / 64 / 64] |= std::uint64_t{1} << slot / 64 % 64;
  }
  void clear(std::size_t slot) {
    std::uint64_t& word = words_[slot / 64];
    word &= ~(std::uint64_t{1} << slot % 64);
    if (word == 0) groups_[slot / 64 / 64] &= ~(std::uint64_t{1} << slot / 64 % 64);
  }
  // The first taken slot from this one on; the number of slots if there is none.
  std::size_t next(std::size_t slot) const {
    const std::size_t word = first_bit(words_[slot / 64], slot % 64) < 64 ? slot / 64 : next_word(slot / 64 + 1);
    if (word >= words_.size()) return size_;
    return word * 64 + first_bit(words_[word], word == slot / 64 ? slot % 64 : 0);
  }

 private:
  static std::size_t first_bit(std::uint64_t bits, std::size_t from) {
    const std::uint64_t rest = bits >> from;
    return rest == 0 ? 64 : from + static_cast<std::size_t>(std::countr_zero(rest));
  }
  std::size_t next_word(std::size_t word) const {
    for (std::size_t group = word / 64; group < groups_.size(); ++group)
      if (const std::size_t bit = first_bit(groups_[group], group == word / 64 ? word % 64 : 0); bit < 64)
        return group * 64 + bit;
    return words_.size();
  }

  std::size_t size_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> groups_;  // which words are not 0
};

}  // namespace vramscope::collect
