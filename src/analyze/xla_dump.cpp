#include "analyze/xla_dump.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "analyze/attribute/categories.h"
#include "analyze/attribute/line_names.h"
#include "analyze/framework.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end != text.data() ? std::optional(value) : std::nullopt;
}

// The text between two marks; empty if the first is missing.
std::string_view between(std::string_view line, std::string_view before, std::string_view after) {
  std::size_t from = line.find(before);
  if (from == std::string_view::npos) return {};
  from += before.size();
  return line.substr(from, std::min(line.find(after, from), line.size()) - from);
}

struct Range {
  std::uint64_t from = 0, to = 0;
};

// A planned value: "<345 MatMul.8 @0> (size=65536,offset=0): f32[64,256]{1,0}".
struct Value {
  std::string name;
  Bytes size = 0, offset = 0;
  std::string shape;
};

// Where a value comes from: the metadata of its instruction.
struct Origin {
  std::string op, line;
  std::uint64_t frame = 0;
};

std::string name_in(std::string_view line) {
  std::string_view number_and_name = between(line, "<", " @");
  return std::string(number_and_name.substr(std::min(number_and_name.find(' ') + 1, number_and_name.size())));
}

// "f32[64,256]", without the layout.
std::string shape_in(std::string_view line) {
  const std::string_view shape = between(line, "): ", "{");
  return std::string(shape.substr(0, shape.find(' ')));
}

// Older versions of XLA name the line itself, newer ones a stack.
Origin origin_in(std::string_view line, std::string_view op) {
  Origin out{std::string(op), {}, number(between(line, "stack_frame_id=", " ")).value_or(0)};
  if (const std::string_view file = between(line, "source_file=\"", "\""); !file.empty())
    out.line = short_line(file, number(between(line, "source_line=", " ")).value_or(0));
  return out;
}

class Dump {
 public:
  explicit Dump(std::string_view text) {
    while (!text.empty()) {
      std::size_t end = std::min(text.find('\n'), text.size());
      take(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    find_backward_pass();
  }

  std::vector<XlaBlock> blocks() const {
    std::vector<XlaBlock> out;
    for (const auto& [bytes, values] : temporaries_) out.push_back(open(bytes, values));
    return out;
  }
  bool understood() const { return understood_; }

 private:
  enum class Section { allocations, values, sequence, ranges, other };

  void take(std::string_view line) {
    if (line.starts_with("BufferAssignment")) understood_ = true;
    if (line.starts_with("Used values")) section_ = Section::values;
    if (line.find("InstructionSequence:") != std::string_view::npos) section_ = Section::sequence;
    if (line.find("BufferLiveRange:") != std::string_view::npos) {
      section_ = Section::ranges;
      return;
    }
    if (line.find("Live ranges at") != std::string_view::npos) section_ = Section::other;
    if (section_ == Section::allocations) allocation(line);
    if (section_ == Section::values) value(line);
    if (section_ == Section::ranges) range(line);
  }

  void allocation(std::string_view line) {
    if (line.starts_with("allocation ")) {
      in_temporary_ = line.find("preallocated-temp") != std::string_view::npos;
      if (const std::string_view shape = between(line, "shape |", "|"); line.find(", parameter ") != std::string_view::npos)
        parameters_.insert(std::string(shape));
      if (in_temporary_) temporaries_.emplace_back(number(between(line, "size ", ",")).value_or(0), std::vector<Value>());
    } else if (in_temporary_ && line.starts_with(" value:")) {
      auto size = number(between(line, "(size=", ",")), offset = number(between(line, "offset=", ")"));
      if (size && offset) temporaries_.back().second.push_back({name_in(line), *size, *offset, shape_in(line)});
    }
  }

  void value(std::string_view line) {
    if (line.starts_with('<')) current_ = name_in(line);
    if (!line.starts_with(" from instruction:")) return;
    if (std::string_view op = between(line, "op_name=\"", "\""); !op.empty())
      origins_[current_] = origin_in(line, op);
    else if (std::string_view copied = between(line, " copy(%", ")"); !copied.empty())
      copies_[current_] = copied;
  }

  // A copy that XLA has added stands for the op whose result it is. In a damaged plan, copies may go round in a circle.
  Origin origin_of(std::string name) const {
    constexpr int kMostCopies = 8;
    for (int steps = 0; steps <= kMostCopies; ++steps) {
      if (const auto origin = origins_.find(name); origin != origins_.end()) return origin->second;
      const auto copy = copies_.find(name);
      if (copy == copies_.end()) break;
      name = copy->second;
    }
    return {};
  }

  void range(std::string_view line) {  // "    MatMul.8{}:22-44"
    std::size_t colon = line.rfind(':');
    if (colon == std::string_view::npos) return;
    std::string_view name = line.substr(0, colon);
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    if (name.ends_with("{}")) name.remove_suffix(2);
    auto from = number(line.substr(colon + 1)), to = number(between(line.substr(colon), "-", " "));
    if (!from || !to || *to < *from || *to == ~std::uint64_t{0}) return;  // instructions are counted from 0
    ranges_[std::string(name)] = {*from, *to};
    last_ = std::max(last_, *to);
  }

  XlaBlock open(Bytes bytes, const std::vector<Value>& values) const {
    XlaBlock out;
    out.bytes = bytes;
    out.instructions = last_ + 1;
    std::map<std::uint64_t, Bytes> change;  // of the bytes in use, by instruction; a decrease wraps around
    for (const Value& v : values) {
      auto [from, to] = range_of(v.name);
      change[from] += v.size;
      change[to + 1] -= v.size;
    }
    Bytes in_use = 0;
    std::optional<Bytes> most;
    for (const auto& [at, delta] : change) {
      in_use += delta;
      if (most && in_use <= *most) continue;
      most = in_use;
      out.fullest = at;
    }
    fill(out, values);
    return out;
  }

  // The values in use at the fullest instruction, by offset; a value that overlaps another one adds only the rest of its bytes.
  void fill(XlaBlock& out, const std::vector<Value>& values) const {
    std::vector<const Value*> there;
    for (const Value& v : values)
      if (auto [from, to] = range_of(v.name); from <= out.fullest && out.fullest <= to) there.push_back(&v);
    std::ranges::stable_sort(
        there, [](const Value* a, const Value* b) { return a->offset != b->offset ? a->offset < b->offset : a->size > b->size; });
    Bytes covered = 0, sum = 0;
    for (const Value* v : there) {
      Bytes begin = std::max(v->offset, covered), end = std::min(std::max(v->offset + v->size, v->offset), out.bytes);
      if (end <= begin) continue;
      covered = end;
      auto [from, to] = range_of(v->name);
      const Origin origin = origin_of(v->name);
      out.parts.push_back(
          {v->name, origin.op, "", origin.line, end - begin, v->offset, from, to, category_of(*v, origin.op), origin.frame});
      sum += end - begin;
    }
    out.unused = out.bytes - std::min(sum, out.bytes);
    std::ranges::stable_sort(out.parts, std::greater(), &XlaPart::bytes);
  }

  // If the names of ops say which pass they belong to: what the forward pass leaves for the backward pass, what the
  // backward pass computes again, and gradients, which have the shape of a parameter.
  std::string category_of(const Value& value, const std::string& op) const {
    const Framework& framework = framework_of_planned(op);
    if (framework.is_own_name == nullptr) return {};
    if (!framework.recomputed_scope.empty() && op.contains(framework.recomputed_scope)) return "recomputed activations";
    const Stage stage = meaning_in_plan(op).stage;
    if (stage == Stage::backward)
      return std::string(name_of(parameters_.contains(value.shape) ? Shown::gradients : Shown::activation_gradients));
    if (stage == Stage::forward && backward_from_ < range_of(value.name).to) return std::string(name_of(Shown::activations));
    return std::string(name_of(Shown::temporaries));
  }

  static bool runs_backward(const std::string& op) {
    const Framework& framework = framework_of_planned(op);
    return framework.is_own_name != nullptr && meaning_in_plan(op).stage == Stage::backward;
  }

  void find_backward_pass() {
    for (const auto& [name, origin] : origins_)
      if (const auto range = ranges_.find(name); range != ranges_.end() && runs_backward(origin.op))
        backward_from_ = std::min(backward_from_, range->second.from);
  }

  // Values of called computations have no range of their own: they may be in use at any time.
  Range range_of(const std::string& name) const {
    auto it = ranges_.find(name);
    return it == ranges_.end() ? Range{0, last_} : it->second;
  }

  Section section_ = Section::allocations;
  bool understood_ = false, in_temporary_ = false;
  std::string current_;
  std::vector<std::pair<Bytes, std::vector<Value>>> temporaries_;
  std::map<std::string, Origin> origins_;
  std::map<std::string, std::string> copies_;
  std::set<std::string> parameters_;  // shapes
  std::map<std::string, Range> ranges_;
  std::uint64_t last_ = 0;
  std::uint64_t backward_from_ = ~std::uint64_t{0};  // the first instruction of the backward pass
};

}  // namespace

Result<std::vector<XlaBlock>> read_buffer_assignment(std::string_view text) {
  Dump dump(text);
  if (!dump.understood()) return fail("not an XLA buffer assignment");
  return dump.blocks();
}

std::string sentence_of(const std::vector<XlaBlock>& blocks) {
  if (blocks.empty()) return "No XLA executable needs a temporary block.";
  const XlaBlock& first = blocks.front();
  return fmt::format("{} takes one block of {} for its temporaries; {} of it is in use at instruction {} of {}.", first.module,
                     support::format_size(first.bytes), support::format_size(first.bytes - first.unused), first.fullest,
                     first.instructions);
}

}  // namespace vramscope::analyze
