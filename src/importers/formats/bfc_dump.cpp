// The protobuf that TensorFlow writes for TF_BFC_MEMORY_DUMP=<prefix> when an allocator runs out of memory.
#include <algorithm>

#include "importers/allocator_name.h"
#include "importers/chunk_list.h"
#include "importers/importer.h"
#include "importers/wire_reader.h"

namespace vramscope::importers::bfc_dump {

extern const Importer kImporter;

namespace {

// Fields of MemoryDump and MemChunk.
constexpr std::uint32_t kAllocator = 1, kChunk = 3, kStats = 5;
constexpr std::uint32_t kAddress = 1, kSize = 2, kRequested = 3, kOp = 5, kInUse = 8;

bool is_name(std::string_view text) {
  return !text.empty() && text.size() < 256 && std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

bool recognizes(std::string_view bytes) {
  WireReader reader(bytes);
  const auto first = reader.next();
  if (!first || first->number != kAllocator || !first->is_text || !is_name(first->text)) return false;
  const auto second = reader.next();
  return second && second->is_text && second->number >= 2 && second->number <= kStats;
}

Status read(std::string_view bytes, Profile& into) {
  std::string_view allocator;
  std::vector<Chunk> chunks;
  const bool whole = each_field(bytes, [&](const WireField& field) {
    if (field.number == kAllocator && field.is_text) allocator = field.text;
    if (field.number != kChunk || !field.is_text) return;
    Chunk chunk;
    each_field(field.text, [&](const WireField& inner) {
      if (inner.number == kAddress) chunk.address = inner.value;
      if (inner.number == kSize) chunk.bytes = inner.value;
      if (inner.number == kRequested) chunk.requested = inner.value;
      if (inner.number == kInUse) chunk.in_use = inner.value != 0;
      if (inner.number == kOp) chunk.op = inner.text;
    });
    chunks.push_back(chunk);
  });
  if (!whole) return fail("damaged memory dump: it is cut off");
  add_chunks(into, into.pool(tensorflow_pool(allocator)), std::move(chunks));
  return {};
}

}  // namespace

const Importer kImporter{.name = "bfc-dump", .title = "a TensorFlow memory dump", .recognizes = recognizes, .read = read};

}  // namespace vramscope::importers::bfc_dump
