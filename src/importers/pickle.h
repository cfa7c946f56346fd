// Reads a Python pickle as data: dictionaries, lists, tuples, texts and numbers. Opcodes that would import or call anything are
// refused. Nothing recurses on the input, and memory is a small multiple of its size.
//
// A pickle of millions of small dictionaries would take tens of times its size as a tree. So a Shapes object may replace a
// dictionary by a number as soon as it is complete, and the lists in it; the replaced content is released. Texts are copied, so
// that the file itself need not stay.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "importers/source.h"
#include "support/result.h"

namespace vramscope::importers {

// 8 bytes: a kind and what it refers to.
class PickleValue {
 public:
  enum class Kind : std::uint8_t { none, flag, integer, large, real, text, object, mark };
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
  static constexpr std::uint32_t kMostNumber = (1u << 31) - 1;

  // Looks at dictionaries as they are completed.
  class Shapes {
   public:
    virtual ~Shapes() = default;
    // A number that stands for the dictionary from now on; or nothing.
    virtual std::optional<std::uint32_t> replace(Pickle& pickle, std::span<const PickleValue> members) = 0;
  };

  Result<PickleValue> read(Source& source, Shapes& shapes);
  // Lets a number stand for a list or tuple. Anything else stays as it is.
  void replace_list(PickleValue list, std::uint32_t number);

  std::optional<std::string_view> text(PickleValue value) const;
  std::optional<std::uint64_t> number(PickleValue value) const;  // of an integer that fits; negative ones wrap around
  bool truth(PickleValue value) const;
  // The number that stands for it.
  std::optional<std::uint32_t> replaced(PickleValue value) const;
  // Elements of a list or tuple; members of a dictionary as key, value, key, value.
  std::span<const PickleValue> items(PickleValue value) const;
  bool is_dictionary(PickleValue value) const;
  // The value of a member; none if there is none.
  PickleValue member(PickleValue dictionary, std::string_view name) const;
  PickleValue member(std::span<const PickleValue> members, std::string_view name) const;
  // Identifies a list, so that a caller need not read it twice.
  std::uint64_t id(PickleValue value) const { return value.payload(); }

  // Two bytes refer to a list of millions, and may do so millions of times. Whoever goes through items() says how many it looks
  // at; member() does. False: more than a file of this size needs, now and from now on.
  bool afford(std::uint64_t steps) const;
  bool exhausted() const { return exhausted_; }

 private:
  class Machine;
  struct Object {
    std::vector<PickleValue> items;
    bool dictionary = false;
  };
  static constexpr std::uint32_t kReplaced = kMostNumber + 1;  // set in objects_

  PickleValue store(std::string_view text);
  void replace(std::uint64_t object, std::uint32_t number);
  const Object* open(PickleValue value) const;

  // A text lies in one piece. Its value is its place (36 bits) and its length (20 bits).
  static constexpr std::uint64_t kLongestText = (1u << 20) - 1, kPiece = kLongestText + 1, kMostPieces = 1u << 16;
  std::vector<std::unique_ptr<char[]>> texts_;
  std::uint64_t room_ = 0;             // in the last piece
  std::deque<std::uint32_t> objects_;  // by object id: an index into open_, or kReplaced and a number
  std::vector<Object> open_;
  std::vector<std::uint64_t> large_;  // integers of more than 56 bits
  std::vector<std::uint32_t> spare_;  // of open_, free to be used again
  // PyTorch's snapshots take about one.
  static constexpr std::uint64_t kStepsPerByte = 16, kAlwaysAffordable = 1 << 16;
  std::uint64_t bytes_read_ = 0;
  mutable std::uint64_t steps_ = 0;
  mutable bool exhausted_ = false;
};

}  // namespace vramscope::importers
