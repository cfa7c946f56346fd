#include "importers/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace vramscope::importers {

using Kind = PickleValue::Kind;

// The stack machine. Each method handles a family of opcodes.
class Pickle::Machine {
 public:
  Machine(Pickle& pickle, Source& source, Shapes& shapes) : p_(pickle), source_(source), shapes_(shapes) {}

  Result<PickleValue> run() {
    while (error_.empty()) {
      const std::uint64_t at = source_.position();
      const auto opcode = fixed<std::uint8_t>();
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
  void cut_off() { error_ = "damaged pickle: it is cut off"; }
  template <typename T>
  T fixed() {
    std::array<char, sizeof(T)> bytes{};
    const std::string_view taken = source_.take(bytes.size());
    if (taken.size() < bytes.size())
      cut_off();
    else
      std::ranges::copy(taken, bytes.begin());
    return std::bit_cast<T>(bytes);
  }
  void push(PickleValue value) { stack_.push_back(value); }
  void push_integer(std::uint64_t value) {
    if (value <= PickleValue::kMask) return push({Kind::integer, value});
    push({Kind::large, p_.large_.size()});
    p_.large_.push_back(value);
  }
  // Little endian, two's complement, of any length. Where it takes more than 64 bits, the largest number that does not: no size
  // or address is that.
  void push_long(std::uint64_t length) {
    std::uint64_t value = 0, taken = 0;
    char last = 0;
    bool fits = true;
    const bool whole = source_.each_piece(length, [&](std::string_view piece) {
      const std::size_t wanted = std::min(piece.size(), static_cast<std::size_t>(sizeof value - std::min(taken, sizeof value)));
      std::memcpy(reinterpret_cast<char*>(&value) + std::min(taken, sizeof value), piece.data(), wanted);
      fits &= piece.find_first_not_of('\0', wanted) == piece.npos;
      taken += piece.size();
      last = piece.back();
    });
    if (!whole) cut_off();
    if ((last & 0x80) != 0 && taken < sizeof value) value |= ~std::uint64_t{0} << 8 * taken;
    push_integer(fits ? value : ~std::uint64_t{0});
  }

  bool scalar(std::uint8_t opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        fixed<std::uint8_t>();
        return true;
      case 0x95:  // FRAME
        fixed<std::uint64_t>();
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
        push_long(fixed<std::uint8_t>());
        return true;
      case 0x8b:
        push_long(fixed<std::uint32_t>());
        return true;
      case 'G':  // a double, big endian; the fraction is not needed anywhere
        fixed<std::uint64_t>();
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
    text_.clear();
    const bool whole = source_.each_piece(length, [&](std::string_view piece) {
      text_.append(piece.substr(0, kLongestText - text_.size()));  // no name is longer
    });
    if (!whole) cut_off();
    if (p_.texts_.size() >= kMostPieces) error_ = "the pickle is too large";
    push(p_.store(text_));
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
      if (error_.empty()) error_ = "damaged pickle: it refers to a value that is not there";
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
      case 'd':
        if (since_mark()) gather(opcode == 'd');
        return true;
      case 0x85:
      case 0x86:
      case 0x87:
        if (last(opcode - 0x84u)) gather(false);
        return true;
      case 'a':
        if (last(1)) add(false);
        return true;
      case 'e':
        if (since_mark()) add(false);
        return true;
      case 's':
        if (last(2)) add(true);
        return true;
      case 'u':
        if (since_mark()) add(true);
        return true;
      case '0':
        if (last(1)) drop();
        return true;
      case '1':
        if (since_mark()) drop();
        return true;
      case '2':
        if (stack_.empty()) error_ = kEmpty;
        if (!stack_.empty()) push(stack_.back());
        return true;
      default:
        return false;
    }
  }

  // What the next opcode works on: the last values of the stack, or those above the last mark.
  bool last(std::size_t count) {
    if (stack_.size() < count || std::any_of(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end(),
                                             [](PickleValue value) { return value.kind() == Kind::mark; })) {
      error_ = kEmpty;
      return false;
    }
    begin_ = below_ = stack_.size() - count;
    return true;
  }
  bool since_mark() {
    const auto mark = std::ranges::find(stack_.rbegin(), stack_.rend(), Kind::mark, &PickleValue::kind);
    if (mark == stack_.rend()) {
      error_ = kEmpty;
      return false;
    }
    begin_ = static_cast<std::size_t>(mark.base() - stack_.begin());
    below_ = begin_ - 1;
    return true;
  }
  std::span<const PickleValue> items() const { return std::span(stack_).subspan(begin_); }
  void drop() { stack_.resize(below_); }

  void gather(bool dictionary) {
    const PickleValue object = fresh({items().begin(), items().end()}, dictionary);
    drop();
    push(object);
    if (dictionary) complete(object, p_.items(object));
  }

  PickleValue fresh(std::vector<PickleValue> items, bool dictionary) {
    if (p_.objects_.size() >= kMostNumber) error_ = "the pickle is too large";
    std::size_t slot = p_.open_.size();
    if (p_.spare_.empty()) {
      p_.open_.push_back({std::move(items), dictionary});
    } else {
      slot = p_.spare_.back();
      p_.spare_.pop_back();
      p_.open_[slot] = {std::move(items), dictionary};
    }
    p_.objects_.push_back(static_cast<std::uint32_t>(slot));
    return {Kind::object, p_.objects_.size() - 1};
  }

  void add(bool to_dictionary) {
    if (below_ == 0 || stack_[below_ - 1].kind() != Kind::object || (to_dictionary && items().size() % 2 != 0)) {
      error_ = kEmpty;
      return;
    }
    const PickleValue value = stack_[below_ - 1];
    const std::uint32_t slot = p_.objects_[value.payload()];
    if ((slot & kReplaced) != 0) return drop();  // what comes later is not needed
    Object& object = p_.open_[slot];
    if (object.dictionary != to_dictionary) {
      error_ = kEmpty;
      return;
    }
    // Nearly every dictionary arrives as a whole and is replaced: then its members are never copied.
    const bool whole = to_dictionary && object.items.empty();
    if (!whole || !complete(value, items())) {
      Object& still = p_.open_[slot];
      still.items.insert(still.items.end(), items().begin(), items().end());
      if (to_dictionary && !whole) complete(value, still.items);
    }
    drop();
  }

  bool complete(PickleValue dictionary, std::span<const PickleValue> members) {
    p_.bytes_read_ = source_.position();
    const auto number = shapes_.replace(p_, members);
    if (number) p_.replace(dictionary.payload(), *number);
    return number.has_value();
  }

  static constexpr const char* kEmpty = "damaged pickle: an opcode without its values";

  Pickle& p_;
  Source& source_;
  Shapes& shapes_;
  std::vector<PickleValue> stack_;
  std::deque<PickleValue> memo_;
  std::size_t begin_ = 0, below_ = 0;  // of what an opcode works on; below_: without the mark
  std::string text_, error_;
};

Result<PickleValue> Pickle::read(Source& source, Shapes& shapes) {
  auto top = Machine(*this, source, shapes).run();
  bytes_read_ = source.position();
  return top;
}

PickleValue Pickle::store(std::string_view text) {
  if (text.empty()) return {Kind::text, 0};
  if (text.size() > room_) {
    texts_.push_back(std::make_unique_for_overwrite<char[]>(kPiece));
    room_ = kPiece;
  }
  const std::uint64_t at = texts_.size() * kPiece - room_;
  std::ranges::copy(text, texts_.back().get() + (kPiece - room_));
  room_ -= text.size();
  return {Kind::text, at << 20 | text.size()};
}

void Pickle::replace(std::uint64_t object, std::uint32_t number) {
  const std::uint32_t slot = objects_[object];
  open_[slot].items = {};
  spare_.push_back(slot);
  objects_[object] = kReplaced | number;
}

void Pickle::replace_list(PickleValue list, std::uint32_t number) {
  // A dictionary may be the very one that is being replaced, in a hostile file.
  if (const Object* object = open(list); object != nullptr && !object->dictionary) replace(list.payload(), number);
}

const Pickle::Object* Pickle::open(PickleValue value) const {
  if (value.kind() != Kind::object || (objects_[value.payload()] & kReplaced) != 0) return nullptr;
  return &open_[objects_[value.payload()]];
}

std::optional<std::string_view> Pickle::text(PickleValue value) const {
  if (value.kind() != Kind::text) return {};
  if (value.payload() == 0) return "";
  const std::uint64_t at = value.payload() >> 20;
  return std::string_view(texts_[at / kPiece].get() + at % kPiece, value.payload() & kLongestText);
}

std::optional<std::uint64_t> Pickle::number(PickleValue value) const {
  if (value.kind() == Kind::integer || value.kind() == Kind::flag) return value.payload();
  if (value.kind() == Kind::large) return large_[value.payload()];
  return {};
}

bool Pickle::truth(PickleValue value) const { return number(value).value_or(0) != 0; }

std::optional<std::uint32_t> Pickle::replaced(PickleValue value) const {
  if (value.kind() != Kind::object || (objects_[value.payload()] & kReplaced) == 0) return {};
  return objects_[value.payload()] & ~kReplaced;
}

std::span<const PickleValue> Pickle::items(PickleValue value) const {
  const Object* object = open(value);
  return object == nullptr ? std::span<const PickleValue>() : object->items;
}

bool Pickle::is_dictionary(PickleValue value) const {
  const Object* object = open(value);
  return object != nullptr && object->dictionary;
}

PickleValue Pickle::member(PickleValue dictionary, std::string_view name) const {
  return is_dictionary(dictionary) ? member(items(dictionary), name) : PickleValue();
}

PickleValue Pickle::member(std::span<const PickleValue> members, std::string_view name) const {
  for (std::size_t i = 0; i + 1 < members.size() && afford(1); i += 2)
    if (text(members[i]) == name) return members[i + 1];
  return {};
}

bool Pickle::afford(std::uint64_t steps) const {
  steps_ += steps;
  exhausted_ = exhausted_ || steps_ > kAlwaysAffordable + kStepsPerByte * bytes_read_;
  return !exhausted_;
}

}  // namespace vramscope::importers
