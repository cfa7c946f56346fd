// Rows without repetition, by number. The table of what is known holds numbers alone: a profile may have millions of rows.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>

#include <tsl/robin_set.h>

#include "support/secret_hash.h"

namespace vramscope::importers {

// Of rows that come from somebody else's file.
inline std::size_t secret_hash_of(std::initializer_list<std::uint64_t> fields) {
  std::size_t out = 0;
  for (const std::uint64_t field : fields) out = support::SecretHash()(out ^ field);
  return out;
}

// Row has == and a member hash().
template <typename Row>
class Distinct {
 public:
  Distinct() : ids_(0, Hash{&rows_}, Equal{&rows_}) {}
  Distinct(const Distinct&) = delete;
  Distinct& operator=(const Distinct&) = delete;

  std::uint32_t number(const Row& row) {
    rows_.push_back(row);
    const auto [found, fresh] = ids_.insert(static_cast<std::uint32_t>(rows_.size() - 1));
    if (!fresh) rows_.pop_back();
    return *found;
  }
  const Row& operator[](std::size_t number) const { return rows_[number]; }
  std::size_t size() const { return rows_.size(); }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }

 private:
  struct Hash {
    const std::deque<Row>* rows;
    std::size_t operator()(std::uint32_t id) const { return (*rows)[id].hash(); }
  };
  struct Equal {
    const std::deque<Row>* rows;
    bool operator()(std::uint32_t a, std::uint32_t b) const { return (*rows)[a] == (*rows)[b]; }
  };

  std::deque<Row> rows_;
  tsl::robin_set<std::uint32_t, Hash, Equal, std::allocator<std::uint32_t>, true> ids_;
};

}  // namespace vramscope::importers
