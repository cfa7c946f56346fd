#include "collect/spool/definitions.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "support/owned_folder.h"

namespace vramscope::collect {

namespace {

// The recorder assigns ids densely, and threads send them nearly in order. An id far beyond is damage and must not size a
// table.
constexpr std::size_t kMostAhead = 4096;

template <typename Record>
bool read_as(std::span<const std::byte> bytes, Record& record) {
  if (bytes.size() < sizeof record) return false;
  std::memcpy(&record, bytes.data(), sizeof record);
  return true;
}

std::string read_all(int file) {
  std::string text;
  char buffer[16384];
  for (ssize_t got; (got = read(file, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

}  // namespace

Definitions::~Definitions() {
  if (file_ >= 0) close(file_);
}

void Definitions::keep_in(const std::filesystem::path& file) {
  file_ = support::open_own_file(file, O_RDWR | O_CREAT);
  if (file_ < 0) return;
  const std::size_t at = load(file_);
  // A collector that was killed while writing left half a record: it is removed.
  if ((ftruncate(file_, static_cast<off_t>(at)) != 0 || lseek(file_, 0, SEEK_END) < 0)) {
    close(file_);
    file_ = -1;
  }
}

void Definitions::load(const std::filesystem::path& file) {
  const int descriptor = support::open_own_file(file, O_RDONLY);
  if (descriptor < 0) return;
  load(descriptor);
  close(descriptor);
}

// Returns the bytes of whole records.
std::size_t Definitions::load(int file) {
  const std::string before = read_all(file);
  const auto bytes = std::as_bytes(std::span(before));
  std::size_t at = 0;
  spool::RecordHead head;
  while (bytes.size() - at >= spool::kSlotBytes) {
    std::memcpy(&head, bytes.data() + at, sizeof head);
    const std::size_t length = std::size_t{head.slots} * spool::kSlotBytes;
    if (length == 0 || length > bytes.size() - at) break;
    take_in(head, bytes.subspan(at, length));
    at += length;
  }
  return at;
}

void Definitions::add(const spool::RecordHead& head, std::span<const std::byte> record) {
  take_in(head, record);
  if (file_ >= 0) unstored_.insert(unstored_.end(), record.begin(), record.end());
}

void Definitions::store() {
  std::size_t done = 0;
  while (file_ >= 0 && done < unstored_.size()) {
    const ssize_t wrote = write(file_, unstored_.data() + done, unstored_.size() - done);
    if (wrote <= 0) break;  // only a recovery would miss it
    done += static_cast<std::size_t>(wrote);
  }
  unstored_.clear();
}

void Definitions::take_in(const spool::RecordHead& head, std::span<const std::byte> record) {
  switch (head.kind) {
    case spool::RecordKind::string: {
      spool::StringRecord text;
      if (!read_as(record, text) || text.id == 0) return;
      const auto bytes = record.subspan(sizeof text);
      add_text(text.id, {reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(text.bytes, bytes.size())});
      return;
    }
    case spool::RecordKind::stack: {
      spool::StackRecord stack;
      if (!read_as(record, stack)) return;
      const auto bytes = record.subspan(sizeof stack);
      Stack& entry = stacks_[stack.id];
      entry.truncated = stack.truncated;
      entry.frames.resize(std::min<std::size_t>(stack.count, bytes.size() / sizeof(spool::Frame)));
      if (!entry.frames.empty()) std::memcpy(entry.frames.data(), bytes.data(), entry.frames.size() * sizeof(spool::Frame));
      return;
    }
    case spool::RecordKind::code: {
      spool::CodeRecord code;
      if (read_as(record, code)) codes_[code.id] = {code.function, code.file, code.first_line};
      return;
    }
    case spool::RecordKind::module: {
      spool::ModuleRecord module;
      if (read_as(record, module)) add_module({module.base, module.bytes, module.path, module.build_id});
      return;
    }
    case spool::RecordKind::op_source: {
      spool::OpSourceRecord source;
      if (read_as(record, source)) op_sources_.push_back(source);
      return;
    }
    default:
      return;
  }
}

const std::string* Definitions::text(std::uint32_t id) const {
  static const std::string kEmpty;
  if (id == 0) return &kEmpty;
  if (id < texts_.size()) return known_texts_[id] ? &texts_[id] : nullptr;
  const auto found = far_texts_.find(id);
  return found == far_texts_.end() ? nullptr : &found->second;
}

void Definitions::add_text(std::uint32_t id, std::string_view text) {
  if (id >= 2 * texts_.size() + kMostAhead) {
    far_texts_[id] = text;
    return;
  }
  if (id >= texts_.size()) {
    texts_.resize(std::max<std::size_t>(id + 1, texts_.size() * 3 / 2));
    known_texts_.resize(texts_.size());
    while (!far_texts_.empty() && far_texts_.begin()->first < texts_.size()) {
      texts_[far_texts_.begin()->first] = std::move(far_texts_.begin()->second);
      known_texts_[far_texts_.begin()->first] = true;
      far_texts_.erase(far_texts_.begin());
    }
  }
  texts_[id] = text;
  known_texts_[id] = true;
}

// Modules by the addresses they have now: a new one takes its range from earlier ones.
void Definitions::add_module(const Module& module) {
  const std::uint64_t end = module.base + std::min(module.bytes, ~module.base);
  if (end == module.base) return;
  auto at = modules_.upper_bound(module.base);
  if (at != modules_.begin()) --at;
  while (at != modules_.end() && at->first < end) {
    const auto [begin, mapped] = *at;
    if (mapped.end <= module.base) {
      ++at;
      continue;
    }
    at = modules_.erase(at);
    if (begin < module.base) modules_[begin] = {module.base, mapped.module};
    if (mapped.end > end) modules_[end] = {mapped.end, mapped.module};
  }
  modules_[module.base] = {end, module};
}

const Definitions::Stack* Definitions::stack(std::uint64_t id) const {
  const auto found = stacks_.find(id);
  return found == stacks_.end() ? nullptr : &found->second;
}

const Definitions::Code* Definitions::code(std::uint32_t id) const {
  const auto found = codes_.find(id);
  return found == codes_.end() ? nullptr : &found->second;
}

const Definitions::Module* Definitions::module_at(std::uint64_t address) const {
  auto after = modules_.upper_bound(address);
  if (after == modules_.begin()) return nullptr;
  const Mapped& mapped = std::prev(after)->second;
  return address < mapped.end ? &mapped.module : nullptr;
}

}  // namespace vramscope::collect
