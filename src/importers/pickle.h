// Reads a Python pickle as data: dictionaries, lists, tuples, texts and numbers. Opcodes that would import or call anything are
// refused. Nothing recurses on the input, and memory is a small multiple of its size.
//
// A pickle of millions of small dictionaries would take tens of times its size as a tree. So a Shapes object may replace a
// dictionary by a number as soon as it is complete; the replaced content is released.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace vramscope::importers {

// 8 bytes: a kind and what it refers to.
class PickleValue {
 public:
  enum class Kind : std::uint8_t { none, flag, integer, large, real, text, object, replaced, mark };
  PickleValue() = default;
  PickleValue(Kind kind, std::uint64_t payload) : bits_(static_cast<std::uint64_t>(kind) << kShift | (payload & kMask)) {}
  Kind kind() const { return static_cast<Kind>(bits_ >> kShift); }
  std::uint64_t payload() const { return bits_ & kMask; }
  static constexpr std::uint64_t kMask = (std::uint64_t{1} << 56) - 1;

 private:
  static constexpr int kShift = 56;
  std::uint64_t bits_ = 0;
};

class Pickle {
 public:
  // Looks at dictionaries as they are completed.
  class Shapes {
   public:
    virtual ~Shapes() = default;
    // A number below 2^32 that stands for the dictionary, and which of the caller's kinds it is (below 256); or nothing.
    virtual std::optional<std::uint64_t> replace(const Pickle& pickle, std::span<const PickleValue> members) = 0;
  };

  // The bytes must outlive the object.
  explicit Pickle(std::string_view bytes) : bytes_(bytes) {}
  Result<PickleValue> read(Shapes& shapes);

  std::optional<std::string_view> text(PickleValue value) const;
  std::optional<std::uint64_t> number(PickleValue value) const;  // of an integer that fits; negative ones wrap around
  bool truth(PickleValue value) const;
  // What Shapes returned for it.
  std::optional<std::uint64_t> replaced(PickleValue value) const;
  // Elements of a list or tuple; members of a dictionary as key, value, key, value.
  std::span<const PickleValue> items(PickleValue value) const;
  bool is_dictionary(PickleValue value) const;
  // The value of a member; none if there is none.
  PickleValue member(PickleValue dictionary, std::string_view name) const;
  PickleValue member(std::span<const PickleValue> members, std::string_view name) const;
  // Identifies a list, so that a caller need not read it twice.
  std::uint64_t id(PickleValue value) const { return value.payload(); }

 private:
  class Machine;
  struct Object {
    std::vector<PickleValue> items;
    bool dictionary = false;
  };

  std::string_view bytes_;
  std::vector<PickleValue> objects_;  // by object id: replaced, or an index into open_
  std::vector<Object> open_;
  std::vector<std::uint64_t> large_;  // integers of more than 56 bits
  std::vector<std::uint32_t> spare_;  // of open_, free to be used again
};

}  // namespace vramscope::importers
