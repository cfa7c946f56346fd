// Gives equal content the same id.
#pragma once

#include <tsl/robin_map.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/compress.h"
#include "support/secret_hash.h"
#include "trace/gen/schema.h"
#include "trace/values.h"

namespace vramscope::trace {

inline std::uint64_t content_hash(std::string_view text) { return support::checksum(support::bytes_of(text)); }

template <typename Entry>
std::uint64_t content_hash(const Entry& entry) {
  // Field by field: padding bytes of a struct are not part of its content.
  std::array<std::uint64_t, 16> fields{};
  std::size_t count = 0;
  for_each_field<Entry>([&](std::uint64_t, auto member) { fields[count++] = to_value(entry.*member); });
  return support::checksum({reinterpret_cast<const std::uint8_t*>(fields.data()), count * sizeof(fields[0])});
}

template <typename Stored>
class Interner {
 public:
  explicit Interner(std::vector<Stored>& entries) : entries_(&entries) {}

  template <typename Entry>
  std::uint32_t operator()(const Entry& entry) {
    // Two contents with the same hash take neighboring slots.
    for (std::uint64_t hash = content_hash(entry);; ++hash) {
      const auto [found, inserted] = ids_.try_emplace(hash, static_cast<std::uint32_t>(entries_->size()));
      if (inserted) entries_->push_back(Stored(entry));
      if (inserted || (*entries_)[found->second] == entry) return found->second;
    }
  }

 private:
  std::vector<Stored>* entries_;
  tsl::robin_map<std::uint64_t, std::uint32_t, support::SecretHash> ids_;
};

}  // namespace vramscope::trace
