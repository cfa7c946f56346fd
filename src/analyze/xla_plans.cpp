// The folder of a recording with XLA's plans. It may have come with the trace from anywhere: no file in it is trusted.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "analyze/attribute/attribute.h"
#include "analyze/framework.h"
#include "analyze/query/state.h"
#include "analyze/xla_dump.h"
#include "analyze/xla_frames.h"
#include "support/owned_fd.h"
#include "support/owned_folder.h"

namespace vramscope::analyze {
namespace {

constexpr std::string_view kSuffix = "buffer-assignment.txt";
// Newer versions of XLA write the names of values and how long they live into files of their own.
constexpr std::string_view kMoreSuffixes[] = {"buffer-assignment-values.txt", "live-range.txt"};
constexpr std::uint64_t kMostPlans = std::uint64_t{256} << 20;  // bytes of all plans together
constexpr std::size_t kOverlap = 8;                             // the start of a line may lie in two pieces of a file

// "module_0012.a_inference_train_55__.3.sm_9.0_gpu_after_optimizations-buffer-assignment.txt" -> "a_inference_train_55__.3"
std::string module_of(std::string name) {
  if (std::size_t dot = name.find('.'); name.starts_with("module_") && dot != std::string::npos) name.erase(0, dot + 1);
  for (std::string_view end : {".sm_", ".gpu_", ".cpu_", "-buffer"})
    if (std::size_t at = name.find(end); at != std::string::npos) name.erase(at);
  return name;
}

// Whether a line that begins behind `from` comes after the tables at the start of a module's text.
bool is_past_tables(std::string_view text, std::size_t from) {
  for (std::size_t end = text.find('\n', from); end != std::string_view::npos; end = text.find('\n', end + 1))
    if (XlaFrames::is_past(text.substr(end + 1))) return true;
  return false;
}

// In a folder that came with a trace, a file with the name of a plan may be anything: a link, a pipe, an endless file. Of a
// module's text, only the tables at the start are read.
Result<std::string> read_plan(int folder, const std::filesystem::path& path, std::uint64_t& room, bool only_tables) {
  const int file = support::open_regular_file(folder, path.filename().string());
  if (file < 0) return fail(fmt::format("{}: cannot read this as a regular file ({})", path.string(), std::strerror(errno)));
  std::string text;
  char buffer[65536];
  ssize_t got = 0;
  while ((got = ::read(file, buffer, sizeof buffer)) > 0 && static_cast<std::uint64_t>(got) <= room) {
    const std::size_t before = text.size();
    text.append(buffer, static_cast<std::size_t>(got));
    room -= static_cast<std::uint64_t>(got);
    if (only_tables && is_past_tables(text, before - std::min(before, kOverlap))) {
      got = 0;
      break;
    }
  }
  ::close(file);
  if (got > 0) return fail(fmt::format("{}: XLA's plans take more than {} MiB; remove some", path.string(), kMostPlans >> 20));
  if (got < 0) return fail(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  return text;
}

std::map<Bytes, std::uint64_t> requests_by_size(const Store& store) {
  std::map<Bytes, std::uint64_t> requests;
  std::vector<std::uint64_t> of_kind(store.kinds.size());
  for (std::uint32_t kind : store.kind)
    if (kind < of_kind.size()) ++of_kind[kind];
  for (std::size_t kind = 0; kind < of_kind.size(); ++kind) requests[store.kinds[kind].requested] += of_kind[kind];
  return requests;
}

// A folder with plans. Held by its descriptor, nobody can exchange it for a link, which would show what lies elsewhere.
class PlanFolder {
 public:
  static Result<PlanFolder> open(const std::filesystem::path& path) {
    PlanFolder out(path);
    if (!out.held_ && errno != ENOENT)
      return fail(
          fmt::format("{}: cannot read this as a folder of XLA plans, not a link ({})", path.string(), std::strerror(errno)));
    if (out.held_)
      for (const std::string& name : support::names_in(out.held_.get())) out.names_.insert(name);
    if (out.plans().empty())
      return fail(fmt::format("{}: no XLA plans in this folder; record with 'vramscope run --xla'", path.string()));
    return out;
  }

  // Names of files, in order.
  std::vector<std::string> plans() const {
    std::vector<std::string> out;
    std::ranges::copy_if(names_, std::back_inserter(out), [](const std::string& name) { return name.ends_with(kSuffix); });
    return out;
  }

  // With what newer versions of XLA write into files of their own.
  Result<std::string> text_of(const std::string& plan, std::uint64_t& room) const {
    auto text = read(plan, room);
    for (std::string_view suffix : kMoreSuffixes) {
      const std::string name = stem_of(plan) + std::string(suffix);
      if (!text || !names_.contains(name)) continue;
      const auto more = read(name, room);
      if (!more) return more;
      text->append("\n").append(*more);
    }
    return text;
  }

  // Empty if the module's text is not there.
  Result<XlaFrames> frames_of(const std::string& plan, const CodeFolders& folders, std::uint64_t& room) const {
    const std::string stem = stem_of(plan), name = stem.substr(0, stem.size() - std::min<std::size_t>(stem.size(), 1)) + ".txt";
    if (!names_.contains(name)) return XlaFrames();
    const auto tables = read(name, room, true);
    if (!tables) return std::unexpected(tables.error());
    return XlaFrames(*tables, folders);
  }

 private:
  explicit PlanFolder(std::filesystem::path path) : path_(std::move(path)), held_(support::open_real_folder(path_)) {}

  static std::string stem_of(const std::string& plan) { return plan.substr(0, plan.size() - kSuffix.size()); }
  Result<std::string> read(const std::string& name, std::uint64_t& room, bool only_tables = false) const {
    return read_plan(held_.get(), path_ / name, room, only_tables);
  }

  std::filesystem::path path_;
  support::OwnedFd held_;
  std::set<std::string> names_;
};

// Layers and lines: as the Python side reported them, otherwise as the plan and the names of ops show them.
class Naming {
 public:
  explicit Naming(const Store& store)
      : dictionaries_(store.dictionaries()), folders_(folders_of(store)), lines_(dictionaries_, folders_) {}

  const CodeFolders& folders() const { return folders_; }

  void name(XlaPart& part, const XlaFrames& frames) const {
    const SourceTexts source = source_of(dictionaries_, lines_, part.op);
    if (!source.line.empty()) part.line = source.line;
    if (part.line.empty()) part.line = frames.line_of(part.frame);
    part.layer = !source.layer.empty() ? source.layer : meaning_in_plan(part.op).layer;
  }

 private:
  const trace::Dictionaries& dictionaries_;
  CodeFolders folders_;
  LineNames lines_;
};

}  // namespace

Result<std::vector<XlaBlock>> xla_blocks(const Engine& engine, const std::filesystem::path& path) {
  const auto folder = PlanFolder::open(path);
  if (!folder) return std::unexpected(folder.error());
  const Naming naming(engine.state().store);
  const auto recorded = requests_by_size(engine.state().store);
  std::uint64_t room = kMostPlans;
  std::vector<XlaBlock> out;
  for (const std::string& plan : folder->plans()) {
    const auto text = folder->text_of(plan, room);
    if (!text) return std::unexpected(text.error());
    const auto frames = folder->frames_of(plan, naming.folders(), room);
    if (!frames) return std::unexpected(frames.error());
    auto blocks = read_buffer_assignment(*text);
    if (!blocks) return fail(fmt::format("{}: {}", (path / plan).string(), blocks.error().message));
    for (XlaBlock& block : *blocks) {
      block.module = module_of(plan);
      for (XlaPart& part : block.parts) naming.name(part, *frames);
      if (const auto blocks_of_size = recorded.find(block.bytes); blocks_of_size != recorded.end())
        block.recorded = blocks_of_size->second;
      out.push_back(std::move(block));
    }
  }
  std::ranges::stable_sort(out, std::greater(), &XlaBlock::bytes);
  return out;
}

}  // namespace vramscope::analyze
