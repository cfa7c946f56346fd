#include "importers/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace vramscope::importers {

using Kind = PickleValue::Kind;

// The stack machine. Each method handles a family of opcodes.
class Pickle::Machine {
 public:
  Machine(Pickle& pickle, Shapes& shapes) : p_(pickle), shapes_(shapes), left_(pickle.bytes_) {}

  Result<PickleValue> run() {
    while (error_.empty()) {
      const std::size_t at = p_.bytes_.size() - left_.size();
      const auto opcode = static_cast<std::uint8_t>(take(1).empty() ? 0 : p_.bytes_[at]);
      if (!error_.empty()) break;
      if (opcode == '.') {
        if (stack_.empty() || stack_.back().kind() == Kind::mark) return fail("damaged pickle: it ends without a value");
        return stack_.back();
      }
      if (!(scalar(opcode) || text(opcode) || memo(opcode) || container(opcode)))
        return fail(fmt::format("damaged pickle, or one with code, which is never run: opcode {:#x} at byte {}", opcode, at));
    }
    return fail(error_);
  }

 private:
  static constexpr std::uint64_t kMostObjects = std::uint64_t{1} << 32;

  std::string_view take(std::uint64_t count) {
    if (count > left_.size()) {
      error_ = "damaged pickle: it is cut off";
      return {};
    }
    const std::string_view out = left_.substr(0, count);
    left_.remove_prefix(count);
    return out;
  }
  template <typename T>
  T fixed() {
    T value{};
    if (const auto bytes = take(sizeof value); !bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  void push(PickleValue value) { stack_.push_back(value); }
  void push_integer(std::uint64_t value) {
    if (value <= PickleValue::kMask) return push({Kind::integer, value});
    push({Kind::large, p_.large_.size()});
    p_.large_.push_back(value);
  }
  // Little endian, two's complement, of any length. More than 64 bits are cut: no size or address has them.
  void push_long(std::string_view bytes) {
    const bool negative = !bytes.empty() && (bytes.back() & 0x80) != 0;
    std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), std::min<std::size_t>(bytes.size(), sizeof value));
    push_integer(value);
  }

  bool scalar(std::uint8_t opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        take(1);
        return true;
      case 0x95:  // FRAME
        take(8);
        return true;
      case 'N':
        push({Kind::none, 0});
        return true;
      case 0x88:
      case 0x89:
        push({Kind::flag, opcode == 0x88 ? 1u : 0u});
        return true;
      case 'J':
        push_integer(static_cast<std::uint64_t>(std::int64_t{fixed<std::int32_t>()}));
        return true;
      case 'K':
        push_integer(fixed<std::uint8_t>());
        return true;
      case 'M':
        push_integer(fixed<std::uint16_t>());
        return true;
      case 0x8a:
        push_long(take(fixed<std::uint8_t>()));
        return true;
      case 0x8b:
        push_long(take(fixed<std::uint32_t>()));
        return true;
      case 'G':  // a double, big endian; the fraction is not needed anywhere
        take(8);
        push({Kind::real, 0});
        return true;
      default:
        return false;
    }
  }

  bool text(std::uint8_t opcode) {
    std::uint64_t length = 0;
    switch (opcode) {
      case 0x8c:  // SHORT_BINUNICODE
      case 'C':   // SHORT_BINBYTES
      case 'U':   // SHORT_BINSTRING
        length = fixed<std::uint8_t>();
        break;
      case 'X':  // BINUNICODE
      case 'B':  // BINBYTES
      case 'T':  // BINSTRING
        length = fixed<std::uint32_t>();
        break;
      case 0x8d:  // BINUNICODE8
      case 0x8e:  // BINBYTES8
        length = fixed<std::uint64_t>();
        break;
      default:
        return false;
    }
    const std::uint64_t at = p_.bytes_.size() - left_.size();
    const std::string_view taken = take(length);
    // A position below 2^36 and a length below 2^20 fit into one value; no name is longer.
    if (at >= std::uint64_t{1} << 36) error_ = "the pickle is too large";
    push({Kind::text, at << 20 | std::min<std::uint64_t>(taken.size(), (1u << 20) - 1)});
    return true;
  }

  bool memo(std::uint8_t opcode) {
    std::uint64_t index = 0;
    switch (opcode) {
      case 0x94:  // MEMOIZE
        index = memo_.size();
        break;
      case 'h':
      case 'q':
        index = fixed<std::uint8_t>();
        break;
      case 'j':
      case 'r':
        index = fixed<std::uint32_t>();
        break;
      default:
        return false;
    }
    const bool puts = opcode != 'h' && opcode != 'j';
    // Writers number what they store one by one; a gap would cost memory that the file does not have.
    if (puts ? index > memo_.size() || stack_.empty() || stack_.back().kind() == Kind::mark : index >= memo_.size()) {
      error_ = "damaged pickle: it refers to a value that is not there";
      return true;
    }
    if (!puts) {
      push(memo_[index]);
    } else {
      if (memo_.size() == index) memo_.emplace_back();
      memo_[index] = stack_.back();
    }
    return true;
  }

  bool container(std::uint8_t opcode) {
    switch (opcode) {
      case '(':
        push({Kind::mark, 0});
        return true;
      case '}':
      case ']':
      case ')':
        push(fresh({}, opcode == '}'));
        return true;
      case 't':
      case 'l':
      case 'd': {
        auto items = since_mark();
        push(fresh(std::move(items), opcode == 'd'));
        if (opcode == 'd') complete(stack_.back());
        return true;
      }
      case 0x85:
      case 0x86:
      case 0x87: {
        auto items = last(opcode - 0x84u);
        push(fresh(std::move(items), false));
        return true;
      }
      case 'a':
        add(last(1), false);
        return true;
      case 'e':
        add(since_mark(), false);
        return true;
      case 's':
        add(last(2), true);
        return true;
      case 'u':
        add(since_mark(), true);
        return true;
      case '0':
        last(1);
        return true;
      case '1':
        since_mark();
        return true;
      case '2':
        if (stack_.empty()) error_ = kEmpty;
        if (!stack_.empty()) push(stack_.back());
        return true;
      default:
        return false;
    }
  }

  std::vector<PickleValue> last(std::size_t count) {
    if (stack_.size() < count || std::any_of(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end(),
                                             [](PickleValue value) { return value.kind() == Kind::mark; })) {
      error_ = kEmpty;
      return {};
    }
    std::vector<PickleValue> out(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return out;
  }
  std::vector<PickleValue> since_mark() {
    const auto mark = std::ranges::find(stack_.rbegin(), stack_.rend(), Kind::mark, &PickleValue::kind);
    if (mark == stack_.rend()) {
      error_ = kEmpty;
      return {};
    }
    std::vector<PickleValue> out(mark.base(), stack_.end());
    stack_.erase(mark.base() - 1, stack_.end());
    return out;
  }

  PickleValue fresh(std::vector<PickleValue> items, bool dictionary) {
    if (p_.objects_.size() >= kMostObjects) error_ = "the pickle is too large";
    std::uint64_t slot = p_.open_.size();
    if (p_.spare_.empty()) {
      p_.open_.push_back({std::move(items), dictionary});
    } else {
      slot = p_.spare_.back();
      p_.spare_.pop_back();
      p_.open_[slot] = {std::move(items), dictionary};
    }
    p_.objects_.push_back({Kind::object, slot});
    return {Kind::object, p_.objects_.size() - 1};
  }

  void add(std::vector<PickleValue> items, bool to_dictionary) {
    if (!error_.empty()) return;
    if (stack_.empty() || stack_.back().kind() != Kind::object || (to_dictionary && items.size() % 2 != 0)) {
      error_ = kEmpty;
      return;
    }
    const PickleValue object = p_.objects_[stack_.back().payload()];
    if (object.kind() != Kind::object) return;  // replaced: what comes later is not needed
    Object& open = p_.open_[object.payload()];
    if (open.dictionary != to_dictionary) {
      error_ = kEmpty;
      return;
    }
    if (open.items.empty())
      open.items = std::move(items);
    else
      open.items.insert(open.items.end(), items.begin(), items.end());
    if (to_dictionary) complete(stack_.back());
  }

  void complete(PickleValue dictionary) {
    const PickleValue object = p_.objects_[dictionary.payload()];
    const auto number = shapes_.replace(p_, p_.open_[object.payload()].items);
    if (!number) return;
    p_.open_[object.payload()].items = {};
    p_.spare_.push_back(static_cast<std::uint32_t>(object.payload()));
    p_.objects_[dictionary.payload()] = {Kind::replaced, *number};
  }

  static constexpr const char* kEmpty = "damaged pickle: an opcode without its values";

  Pickle& p_;
  Shapes& shapes_;
  std::string_view left_;
  std::vector<PickleValue> stack_, memo_;
  std::string error_;
};

Result<PickleValue> Pickle::read(Shapes& shapes) { return Machine(*this, shapes).run(); }

std::optional<std::string_view> Pickle::text(PickleValue value) const {
  if (value.kind() != Kind::text) return {};
  return bytes_.substr(value.payload() >> 20, value.payload() & ((1u << 20) - 1));
}

std::optional<std::uint64_t> Pickle::number(PickleValue value) const {
  if (value.kind() == Kind::integer || value.kind() == Kind::flag) return value.payload();
  if (value.kind() == Kind::large) return large_[value.payload()];
  return {};
}

bool Pickle::truth(PickleValue value) const { return number(value).value_or(0) != 0; }

std::optional<std::uint64_t> Pickle::replaced(PickleValue value) const {
  if (value.kind() != Kind::object || objects_[value.payload()].kind() != Kind::replaced) return {};
  return objects_[value.payload()].payload();
}

std::span<const PickleValue> Pickle::items(PickleValue value) const {
  if (value.kind() != Kind::object || objects_[value.payload()].kind() != Kind::object) return {};
  return open_[objects_[value.payload()].payload()].items;
}

bool Pickle::is_dictionary(PickleValue value) const {
  return value.kind() == Kind::object && objects_[value.payload()].kind() == Kind::object &&
         open_[objects_[value.payload()].payload()].dictionary;
}

PickleValue Pickle::member(PickleValue dictionary, std::string_view name) const {
  return is_dictionary(dictionary) ? member(items(dictionary), name) : PickleValue();
}

PickleValue Pickle::member(std::span<const PickleValue> members, std::string_view name) const {
  for (std::size_t i = 0; i + 1 < members.size(); i += 2)
    if (text(members[i]) == name) return members[i + 1];
  return {};
}

}  // namespace vramscope::importers
