// The chunks that TensorFlow prints when an allocator runs out of memory, in a log with anything else around them.
#include <map>

#include "importers/allocator_name.h"
#include "importers/chunk_list.h"
#include "importers/importer.h"
#include "importers/lines.h"
#include "support/units.h"

namespace vramscope::importers::tensorflow_log {

extern const Importer kImporter;

namespace {

constexpr std::string_view kDump = "BFCAllocator dump for ";

struct Dump {
  std::vector<Chunk> chunks;
  std::uint64_t requested = 0, limit = 0;
  std::string_view op;
};

// "InUse at 7f12 of size 256 next 3", or in old versions "InUse at 0x7f12 next 3 of size 256".
std::optional<Chunk> chunk_in(std::string_view line) {
  Chunk chunk;
  auto rest = after(line, "] InUse at ");
  chunk.in_use = rest.has_value();
  if (!rest) rest = after(line, "] Free  at ");
  if (!rest) return {};
  if (rest->starts_with("0x")) rest->remove_prefix(2);
  const auto address = number_in(*rest, 16);
  const auto size_text = after(*rest, "of size ");
  const auto size = size_text ? number_in(*size_text) : std::nullopt;
  if (!address || !size) return {};
  chunk.address = *address;
  chunk.bytes = chunk.requested = *size;
  return chunk;
}

class Log {
 public:
  void line(std::string_view line) {
    if (const auto name = after(line, "Allocator (")) failed(line, name->substr(0, name->find(')')));
    if (const auto name = after(line, kDump)) {
      current_ = &dumps_[*name];
      current_->chunks.clear();  // a later dump of the same allocator
    }
    if (current_ == nullptr) return;
    if (const auto chunk = chunk_in(line)) current_->chunks.push_back(*chunk);
    if (line.starts_with("Limit:")) {
      const std::size_t at = line.find_first_not_of(' ', 6);
      if (const auto limit = support::parse_size(at == line.npos ? "" : std::string(line.substr(at)))) current_->limit = *limit;
    }
  }

  Status into(Profile& profile) {
    bool any = false;
    for (auto& [allocator, dump] : dumps_) {
      if (dump.chunks.empty()) continue;
      any = true;
      const std::uint32_t pool = profile.pool(tensorflow_pool(allocator));
      std::uint64_t live = 0;
      for (const Chunk& chunk : dump.chunks) live += chunk.in_use ? chunk.bytes : 0;
      add_chunks(profile, pool, std::move(dump.chunks));
      if (dump.requested > 0) profile.oom(0, pool, dump.requested, live, dump.limit, {.op = profile.text(dump.op)});
    }
    if (!any) return fail("a TensorFlow log whose dump has no chunks; run the program again with TF_CPP_MIN_LOG_LEVEL=0");
    profile.lacks("requested sizes");
    return {};
  }

 private:
  // "Allocator (GPU_0_bfc) ran out of memory trying to allocate 4.00MiB (rounded to 4194304)requested by op AddV2"
  void failed(std::string_view line, std::string_view allocator) {
    const auto rounded = after(line, "(rounded to ");
    if (!rounded || !after(line, "ran out of memory trying to allocate")) return;
    Dump& dump = dumps_[allocator];
    dump.requested = number_in(*rounded).value_or(0);
    const auto op = after(*rounded, "requested by op ");
    dump.op = op ? op->substr(0, op->find_first_of(" \t")) : std::string_view();
  }

  std::map<std::string_view, Dump> dumps_;  // the last of each allocator
  Dump* current_ = nullptr;
};

bool recognizes(std::string_view bytes) {
  return bytes.substr(0, 4096).find('\0') == bytes.npos && bytes.find(kDump) != bytes.npos;
}

Status read(std::string_view bytes, Profile& into) {
  Log log;
  each_line(bytes, [&](std::string_view line) { log.line(line); });
  return log.into(into);
}

}  // namespace

const Importer kImporter{
    .name = "tensorflow-log", .title = "a TensorFlow log with an out-of-memory dump", .recognizes = recognizes, .read = read};

}  // namespace vramscope::importers::tensorflow_log
