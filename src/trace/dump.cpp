#include "trace/dump.h"

#include <fmt/format.h>
#include <tsl/robin_map.h>

#include <cerrno>
#include <iterator>
#include <utility>

#include "support/file.h"
#include "support/json_text.h"
#include "support/json_writer.h"
#include "support/secret_hash.h"
#include "trace/cut_stack.h"
#include "trace/scan.h"

namespace vramscope::trace {
namespace {

using support::append_json_string;

// Builds lines from names and values, as JSON or as words.
class Lines {
 public:
  explicit Lines(bool json) : json_lines_(json) {}

  std::string& text() { return text_; }
  void begin(const At& at, std::uint64_t tid, std::string_view kind) {
    if (json_lines_) {
      json_.begin_object().member("event", kind).member("seq", at.seq).member("time_us", at.time_us).member("thread", tid);
      return;
    }
    fmt::format_to(std::back_inserter(text_), "{:>10} {:>14.6f} {:>7} {:<13}", at.seq, static_cast<double>(at.time_us) * 1e-6,
                   tid, kind);
  }
  void end() {
    if (json_lines_) {
      text_ += json_.end_object().text();
      json_.clear();
    }
    text_ += '\n';
  }

  void add(std::string_view name, std::string_view value) {
    if (json_lines_) {
      json_.member(name, value);
      return;
    }
    // Words stay words; what would break the line or the columns is quoted.
    const bool plain = !value.empty() && value.find_first_of(" \"\\=") == value.npos;
    std::string quoted;
    append_json_string(quoted, value);
    word(name, plain && quoted.size() == value.size() + 2 ? value : std::string_view(quoted));
  }
  void add_number(std::string_view name, std::uint64_t value) {
    if (json_lines_ && value == kNone) {
      json_.key(name).null();
    } else if (json_lines_) {
      json_.member(name, value);
    } else if (value == kNone) {
      word(name, "none");
    } else {
      word(name, name == "address" ? fmt::format("{:#x}", value) : fmt::format("{}", value));
    }
  }
  void add_number(std::string_view name, std::int64_t value) {
    if (json_lines_)
      json_.member(name, value);
    else
      word(name, fmt::format("{}", value));
  }
  void add_flag(std::string_view name, bool value) {
    if (json_lines_)
      json_.member(name, value);
    else
      word(name, value ? "true" : "false");
  }
  void add_list(std::string_view name, const std::vector<std::string>& values) {
    support::JsonWriter separate(false);  // among words too
    support::JsonWriter& json = json_lines_ ? json_.key(name) : separate;
    json.begin_array();
    for (const std::string& value : values) json.value(value);
    json.end_array();
    if (!json_lines_) word(name, separate.text());
  }

 private:
  void word(std::string_view name, std::string_view value) { fmt::format_to(std::back_inserter(text_), " {}={}", name, value); }

  bool json_lines_;
  support::JsonWriter json_{false};  // of the line that is being made
  std::string text_;
};

class Dumper {
 public:
  Dumper(const Reader& reader, const DumpOptions& options)
      : all_(reader.dictionaries()), options_(options), line_(options.jsonl) {}

  // Appends the lines of a chunk to text().
  void chunk(const Chunk& chunk) {
    std::array<std::size_t, 256> row{};
    next_alloc_ = chunk.first_alloc;
    for (std::size_t i = 0; i < chunk.kind.size(); ++i) {
      const std::size_t thread = std::to_underlying(chunk.thread[i]);
      const std::uint64_t tid = thread < all_.threads.size() ? all_.threads[thread].tid : 0;
      line_.begin({chunk.seq[i], chunk.time_us[i], chunk.thread[i]}, tid, name_of(chunk.kind[i]));
      for_each_table(chunk.tables, [&](EventKind kind, const auto& table) {
        if (kind == chunk.kind[i]) event(table, row[std::to_underlying(kind)]++);
      });
      line_.end();
    }
  }

  std::string& text() { return line_.text(); }

 private:
  struct Live {
    SiteId site;
    std::uint64_t address;
    std::uint64_t granted;
  };

  const std::string& text_of(StringId id) const { return all_.strings[std::to_underlying(id)]; }

  void event(const AllocColumns& table, std::size_t row) {
    const Alloc alloc = table.row(row);
    line_.add_number("ordinal", next_alloc_);
    line_.add_number("address", alloc.address);
    line_.add_number("granted", alloc.granted);
    value("site", alloc.site);
    line_.add_number("step", alloc.step);
    live_[next_alloc_++] = {alloc.site, alloc.address, alloc.granted};
  }

  void event(const FreeColumns& table, std::size_t row) {
    const Free free = table.row(row);
    line_.add_number("alloc", free.alloc);
    const auto found = live_.find(free.alloc);
    if (found != live_.end()) {
      line_.add_number("address", found->second.address);
      line_.add_number("granted", found->second.granted);
      value("pool", all_.sites[std::to_underlying(found->second.site)].pool);
      live_.erase(found);
    } else {
      line_.add_number("address", free.address);
      if (free.alloc == kNone && std::to_underlying(free.pool) < all_.pools.size()) value("pool", free.pool);
    }
    line_.add_number("stream", free.stream);
  }

  template <typename Table>
  void event(const Table& table, std::size_t row) {
    for_each_column(
        table, [&](std::uint64_t, std::string_view name, std::string_view, const auto& column) { value(name, column[row]); });
  }

  void value(std::string_view name, StringId id) { line_.add(name, text_of(id)); }
  void value(std::string_view name, PoolId id) {
    const Pool& pool = all_.pools[std::to_underlying(id)];
    line_.add(name, text_of(pool.name));
    line_.add_number("device", pool.device);
    line_.add("level", name_of(pool.level));
  }
  void value(std::string_view, SiteId id) {
    const Site& site = all_.sites[std::to_underlying(id)];
    value("pool", site.pool);
    line_.add_number("requested", site.requested);
    line_.add("op", text_of(site.op));
    line_.add("region", text_of(site.region));
    line_.add_number("dtype", site.dtype);
    line_.add("shape", text_of(site.shape));
    line_.add_number("stream", site.stream);
    line_.add("owner", text_of(site.owner));
    line_.add_number("flags", site.flags);
    if (options_.stacks) stack(all_.stacks[std::to_underlying(site.stack)]);
  }
  void value(std::string_view name, std::uint64_t number) { line_.add_number(name, number); }
  void value(std::string_view name, std::int64_t number) { line_.add_number(name, number); }
  void value(std::string_view name, std::uint8_t flag) { line_.add_flag(name, flag != 0); }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  void value(std::string_view name, Enum word) {
    line_.add(name, name_of(word));
  }

  void stack(const Stack& stack) {
    std::vector<std::string> frames;
    for (const FrameId id : stack.frames) {
      const Frame& frame = all_.frames[std::to_underlying(id)];
      const std::string& function = text_of(frame.function);
      const std::string& file = text_of(frame.file);
      frames.push_back(frame.offset != 0 ? fmt::format("{} {}+{:#x}", function, file, frame.offset)
                                         : fmt::format("{} {}:{}", function, file, frame.line));
    }
    if (stack.cut > 0) frames.push_back(more_frames(stack.cut));
    line_.add_list("stack", frames);
  }

  const Dictionaries& all_;
  DumpOptions options_;
  Lines line_;
  tsl::robin_map<std::uint64_t, Live, support::SecretHash> live_;
  std::uint64_t next_alloc_ = 0;
};

}  // namespace

Status dump(const Reader& reader, DumpOptions options, std::FILE* out) {
  Dumper dumper(reader, options);
  Chunk chunk;
  Status unreadable;
  for (std::size_t i = 0; i < reader.chunks(); ++i) {
    if (Status status = reader.read(i, chunk); !status) {
      if (unreadable) unreadable = std::move(status);
      continue;
    }
    dumper.text().clear();
    dumper.chunk(chunk);
    const std::string& text = dumper.text();
    if (std::fwrite(text.data(), 1, text.size(), out) != text.size()) return support::output_error(errno);
  }
  if (std::fflush(out) != 0) return support::output_error(errno);
  // The damage says where it began; what could not be read follows from it.
  const std::string& message = reader.damage().message;
  if (unreadable && message.ends_with(kUnfinished)) return {};
  if (!message.empty()) return fail(reader.path().string() + ": " + message);
  return unreadable;
}

}  // namespace vramscope::trace
