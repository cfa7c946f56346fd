#include "analyze/xla_dump.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "analyze/attribute.h"
#include "analyze/op_names.h"
#include "analyze/state.h"

namespace vramscope::analyze {
namespace {

constexpr std::string_view kSuffix = "buffer-assignment.txt";

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end != text.data() ? std::optional(value) : std::nullopt;
}

// What stands between two marks, empty where they are not there.
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
};

std::string name_in(std::string_view line) {
  std::string_view inside = between(line, "<", " @");
  return std::string(inside.substr(std::min(inside.find(' ') + 1, inside.size())));
}

class Dump {
 public:
  explicit Dump(std::string_view text) {
    while (!text.empty()) {
      std::size_t end = std::min(text.find('\n'), text.size());
      take(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
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
      inside_ = line.find("preallocated-temp") != std::string_view::npos;
      if (inside_) temporaries_.emplace_back(number(between(line, "size ", ",")).value_or(0), std::vector<Value>());
    } else if (inside_ && line.starts_with(" value:")) {
      auto size = number(between(line, "(size=", ",")), offset = number(between(line, "offset=", ")"));
      if (size && offset) temporaries_.back().second.push_back({name_in(line), *size, *offset});
    }
  }

  void value(std::string_view line) {
    if (line.starts_with("<")) current_ = name_in(line);
    if (line.starts_with(" from instruction:"))
      if (std::string_view op = between(line, "op_name=\"", "\""); !op.empty()) ops_[current_] = op;
  }

  void range(std::string_view line) {  // "    MatMul.8{}:22-44"
    std::size_t colon = line.rfind(':');
    if (colon == std::string_view::npos) return;
    std::string_view name = line.substr(0, colon);
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    if (name.ends_with("{}")) name.remove_suffix(2);
    auto from = number(line.substr(colon + 1)), to = number(between(line.substr(colon), "-", " "));
    if (!from || !to || *to < *from) return;
    ranges_[std::string(name)] = {*from, *to};
    last_ = std::max(last_, *to);
  }

  XlaBlock open(Bytes bytes, const std::vector<Value>& values) const {
    XlaBlock out;
    out.bytes = bytes;
    out.instructions = last_ + 1;
    std::map<std::uint64_t, std::int64_t> change;  // of the bytes in use, by instruction
    for (const Value& v : values) {
      auto [from, to] = range_of(v.name);
      change[from] += static_cast<std::int64_t>(v.size);
      change[to + 1] -= static_cast<std::int64_t>(v.size);
    }
    std::int64_t in_use = 0, most = -1;
    for (const auto& [at, delta] : change)
      if ((in_use += delta) > most) most = in_use, out.fullest = at;
    fill(out, values);
    return out;
  }

  // What is in use at the fullest instruction, by offset; a value that lies on another one's bytes adds only what is beyond them.
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
      auto op = ops_.find(v->name);
      auto [from, to] = range_of(v->name);
      out.parts.push_back({v->name, op == ops_.end() ? "" : op->second, "", "", end - begin, v->offset, from, to});
      sum += end - begin;
    }
    out.unused = out.bytes - std::min(sum, out.bytes);
    std::ranges::stable_sort(out.parts, std::greater(), &XlaPart::bytes);
  }

  // Values of called computations have no range of their own: they may be there at any time.
  Range range_of(const std::string& name) const {
    auto it = ranges_.find(name);
    return it == ranges_.end() ? Range{0, last_} : it->second;
  }

  Section section_ = Section::allocations;
  bool understood_ = false, inside_ = false;
  std::string current_;
  std::vector<std::pair<Bytes, std::vector<Value>>> temporaries_;
  std::map<std::string, std::string> ops_;
  std::map<std::string, Range> ranges_;
  std::uint64_t last_ = 0;
};

// "module_0012.a_inference_train_55__.3.sm_9.0_gpu_after_optimizations-buffer-assignment.txt" -> "a_inference_train_55__.3"
std::string module_of(std::string name) {
  if (std::size_t dot = name.find('.'); name.starts_with("module_") && dot != std::string::npos) name.erase(0, dot + 1);
  for (std::string_view end : {".sm_", ".gpu_", ".cpu_", "-buffer"})
    if (std::size_t at = name.find(end); at != std::string::npos) name.erase(at);
  return name;
}

}  // namespace

Result<std::vector<XlaBlock>> read_buffer_assignment(std::string_view text) {
  Dump dump(text);
  if (!dump.understood()) return fail("this is no buffer assignment of XLA");
  return dump.blocks();
}

Result<std::vector<XlaBlock>> xla_blocks(const Engine& engine, const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (auto it = std::filesystem::directory_iterator(folder, error); !error && it != std::filesystem::directory_iterator();
       it.increment(error))
    if (it->path().filename().string().ends_with(kSuffix)) files.push_back(it->path());
  if (files.empty()) return fail(fmt::format("{}: no plans of XLA here; record with 'vramscope run --xla'", folder.string()));
  std::ranges::sort(files);

  const Store& store = engine.state().store;
  const LineNames lines(store.words());
  std::vector<XlaBlock> out;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    auto blocks = read_buffer_assignment(text);
    if (!blocks) return fail(fmt::format("{}: {}", path.string(), blocks.error().message));
    for (XlaBlock& block : *blocks) {
      block.module = module_of(path.filename().string());
      for (XlaPart& part : block.parts) {
        OpSourceWords source = source_of(store.words(), lines, part.op);
        part.line = source.line;
        part.layer = !source.layer.empty() ? source.layer : meaning_of(part.op, "output", trace::Framework::tensorflow).layer;
      }
      for (std::uint32_t kind : store.kind)
        if (kind < store.kinds.size() && store.kinds[kind].requested == block.bytes) ++block.recorded;
      out.push_back(std::move(block));
    }
  }
  std::ranges::stable_sort(out, std::greater(), &XlaBlock::bytes);
  return out;
}

}  // namespace vramscope::analyze
