// A column of the store: values by index, of which only the requested blocks are in memory.
//
// A newly built column is entirely in memory. A column of an index is unpacked and checked block by block at first use: opening
// costs the same for any length, and a question pays only for what it reads.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <span>

namespace vramscope::analyze {

inline constexpr unsigned kColumnBlockBits = 15;  // values per block: enough to pack well, few enough to unpack in 0.1 ms
inline constexpr std::uint64_t kColumnBlock = std::uint64_t{1} << kColumnBlockBits;

// Fetches blocks of one column. Thread-safe.
class ColumnBlocks {
 public:
  virtual ~ColumnBlocks() = default;
  // Returns when the block is in memory; throws std::runtime_error if it has changed since the index was opened.
  virtual void load(std::uint64_t block) = 0;
  const std::atomic<std::uint8_t>* ready() const { return ready_; }

 protected:
  std::atomic<std::uint8_t>* ready_ = nullptr;  // by block
};

template <typename T>
class Column {
 public:
  using value_type = T;

  class Iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using reference = T;
    using pointer = void;

    Iterator() = default;
    Iterator(const Column* column, std::uint64_t at) : column_(column), at_(at) {}
    T operator*() const { return (*column_)[at_]; }
    T operator[](difference_type n) const { return *(*this + n); }
    Iterator& operator+=(difference_type n) {
      at_ += static_cast<std::uint64_t>(n);
      return *this;
    }
    Iterator& operator-=(difference_type n) { return *this += -n; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this -= 1; }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    Iterator operator--(int) {
      Iterator before = *this;
      --*this;
      return before;
    }
    friend Iterator operator+(Iterator i, difference_type n) { return i += n; }
    friend Iterator operator+(difference_type n, Iterator i) { return i += n; }
    friend Iterator operator-(Iterator i, difference_type n) { return i -= n; }
    friend difference_type operator-(const Iterator& a, const Iterator& b) { return static_cast<difference_type>(a.at_ - b.at_); }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }
    friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.at_ <=> b.at_; }

   private:
    const Column* column_ = nullptr;
    std::uint64_t at_ = 0;
  };

  Column() = default;
  // All values are in memory.
  Column(std::span<const T> values) : data_(values.data()), size_(values.size()) {}
  Column(std::span<T> values) : Column(std::span<const T>(values)) {}
  // Values of a block are at their position in `values` once the block is loaded.
  Column(std::span<const T> values, ColumnBlocks* blocks)
      : data_(values.data()), size_(values.size()), blocks_(blocks), ready_(blocks->ready()), shift_(kColumnBlockBits) {}

  T operator[](std::uint64_t i) const {
    if (ready_[i >> shift_].load(std::memory_order_acquire) == 0) [[unlikely]]
      blocks_->load(i >> shift_);
    return data_[i];
  }
  std::uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size_}; }
  // The values [from, to): a range that is valid as long as the column.
  std::ranges::subrange<Iterator> part(std::uint64_t from, std::uint64_t to) const {
    return {Iterator(this, from), Iterator(this, to)};
  }

 private:
  // One block of any length that is always in memory.
  static constexpr unsigned kWhole = 63;
  static inline const std::atomic<std::uint8_t> kThere{1};

  const T* data_ = nullptr;
  std::uint64_t size_ = 0;
  ColumnBlocks* blocks_ = nullptr;
  const std::atomic<std::uint8_t>* ready_ = &kThere;
  unsigned shift_ = kWhole;
};

}  // namespace vramscope::analyze
