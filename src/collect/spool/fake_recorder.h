// For tests: writes a spool by the rules of layout.h, one step at a time, so that every intermediate state can be examined.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "collect/sample/tick_clock.h"
#include "spool/layout.h"
#include "support/owned_folder.h"

namespace vramscope::collect {

class FakeRecorder {
 public:
  FakeRecorder(const std::filesystem::path& folder, std::uint32_t pid, std::uint32_t extents = 1)
      : path_(folder / (std::to_string(pid) + "-0.spool")) {
    const std::size_t bytes = spool::kHeaderBytes + extents * spool::kExtentBytes;
    const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) std::abort();
    memory_ = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    close(file);
    bytes_ = bytes;
    spool::Header& head = header();
    head.version = spool::kVersion;
    head.header_bytes = spool::kHeaderBytes;
    head.pid = pid;
    head.clock = spool::Clock::monotonic_ns;
    head.ticks0 = head.monotonic0_ns = monotonic_ns();
    head.realtime0_ns = realtime_ns();
    head.next_seq = 1;
    head.segment_count = extents * static_cast<std::uint32_t>(spool::kExtentSegments);
    head.magic = spool::kMagic;
  }
  FakeRecorder(const FakeRecorder&) = delete;
  FakeRecorder& operator=(const FakeRecorder&) = delete;
  ~FakeRecorder() { munmap(memory_, bytes_); }

  const std::filesystem::path& path() const { return path_; }
  spool::Header& header() { return *reinterpret_cast<spool::Header*>(memory_); }
  spool::SegmentHeader& segment(std::uint32_t index) {
    return *reinterpret_cast<spool::SegmentHeader*>(memory_ + spool::kHeaderBytes + index * spool::kSegmentBytes);
  }
  std::uint64_t draw() { return header().next_seq.fetch_add(1); }

  // Takes a segment as a thread does, whatever it contained.
  void take(std::uint32_t index, std::uint32_t thread) {
    spool::SegmentHeader& s = segment(index);
    s.state = spool::SegmentState::owned;
    s.committed = sizeof(spool::SegmentHeader);
    ++s.generation;
    s.thread = thread;
    s.records = 0;
  }
  void seal(std::uint32_t index) {
    segment(index).seal = header().seals++;
    segment(index).state = spool::SegmentState::sealed;
  }
  // Bytes of a record at the end of a segment; published unless requested otherwise.
  void append(std::uint32_t index, const void* record, std::size_t bytes, bool publish = true) {
    spool::SegmentHeader& s = segment(index);
    const std::uint32_t at = s.committed.load();
    std::memcpy(reinterpret_cast<std::byte*>(&s) + at, record, bytes);
    ++s.records;
    if (publish)
      s.committed = at + static_cast<std::uint32_t>((bytes + spool::kSlotBytes - 1) / spool::kSlotBytes * spool::kSlotBytes);
  }

  void text(std::uint32_t index, std::uint32_t id, const std::string& words) {
    std::vector<std::byte> bytes(sizeof(spool::StringRecord) + words.size());
    spool::StringRecord record{};
    record.head.kind = spool::RecordKind::string;
    record.head.slots = static_cast<std::uint16_t>((bytes.size() + spool::kSlotBytes - 1) / spool::kSlotBytes);
    record.id = id;
    record.bytes = static_cast<std::uint32_t>(words.size());
    std::memcpy(bytes.data(), &record, sizeof record);
    std::memcpy(bytes.data() + sizeof record, words.data(), words.size());
    append(index, bytes.data(), bytes.size());
  }
  std::uint8_t pool(std::uint32_t name) {
    const std::uint32_t index = header().pool_count.load();
    spool::Pool& pool = header().pools[index];
    pool.key = index + 1;
    pool.name = name;
    pool.device = -1;
    pool.level = spool::Level::tensor;
    pool.memory = spool::Memory::host;
    pool.flags = spool::kPoolOrderExact;
    header().pool_count = index + 1;
    return static_cast<std::uint8_t>(index);
  }
  static spool::AllocRecord alloc_record(std::uint64_t seq, std::uint64_t address, std::uint64_t granted, std::uint32_t op = 0) {
    spool::AllocRecord record{};
    record.head.seq = seq;
    record.head.ticks = monotonic_ns();
    record.head.kind = spool::RecordKind::alloc;
    record.head.slots = spool::slots_of<spool::AllocRecord>;
    record.address = address;
    record.requested = record.granted = granted;
    record.op = op;
    return record;
  }
  void alloc(std::uint32_t index, std::uint64_t seq, std::uint64_t address, std::uint64_t granted, std::uint32_t op = 0) {
    const auto record = alloc_record(seq, address, granted, op);
    append(index, &record, sizeof record);
    spool::Pool& pool = header().pools[0];
    ++pool.allocs;
    pool.live_bytes += granted;
    pool.peak_bytes = std::max(pool.peak_bytes.load(), pool.live_bytes.load());
  }
  void free(std::uint32_t index, std::uint64_t seq, std::uint64_t address, std::uint64_t granted) {
    spool::FreeRecord record{};
    record.head.seq = seq;
    record.head.ticks = monotonic_ns();
    record.head.kind = spool::RecordKind::free;
    record.head.slots = spool::slots_of<spool::FreeRecord>;
    record.address = address;
    append(index, &record, sizeof record);
    ++header().pools[0].frees;
    header().pools[0].live_bytes -= granted;
  }

 private:
  std::filesystem::path path_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

// A folder that is removed with its owner.
class TestFolder {
 public:
  TestFolder() { path_ = support::OwnedFolder::create(std::filesystem::temp_directory_path(), "vramscope-test-").value().path(); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace vramscope::collect
