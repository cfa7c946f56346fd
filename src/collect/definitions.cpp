#include "collect/definitions.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "collect/proc.h"

namespace vramscope::collect {

namespace {

// Ids are handed out densely by the recorder; anything beyond is damage and must not size a table.
constexpr std::uint32_t kMaxTexts = 1u << 24;

template <typename Record>
bool read_as(std::span<const std::byte> bytes, Record& record) {
  if (bytes.size() < sizeof record) return false;
  std::memcpy(&record, bytes.data(), sizeof record);
  return true;
}

}  // namespace

Definitions::~Definitions() {
  if (file_ >= 0) close(file_);
}

void Definitions::keep_in(const std::filesystem::path& file) {
  const std::string before = proc::read_file(file.string());
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
  file_ = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  // A collector that was killed while writing left half a record: it goes.
  if (file_ >= 0 && (ftruncate(file_, static_cast<off_t>(at)) != 0 || lseek(file_, 0, SEEK_END) < 0)) {
    close(file_);
    file_ = -1;
  }
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
      if (!read_as(record, text) || text.id == 0 || text.id >= kMaxTexts) return;
      const auto bytes = record.subspan(sizeof text);
      if (text.id >= texts_.size()) {
        texts_.resize(text.id + 1);
        known_texts_.resize(text.id + 1);
      }
      texts_[text.id].assign(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(text.bytes, bytes.size()));
      known_texts_[text.id] = true;
      return;
    }
    case spool::RecordKind::stack: {
      spool::StackRecord stack;
      if (!read_as(record, stack)) return;
      const auto bytes = record.subspan(sizeof stack);
      Stack& entry = stacks_[stack.id];
      entry.truncated = stack.truncated;
      entry.frames.resize(std::min<std::size_t>(stack.count, bytes.size() / sizeof(spool::Frame)));
      std::memcpy(entry.frames.data(), bytes.data(), entry.frames.size() * sizeof(spool::Frame));
      return;
    }
    case spool::RecordKind::code: {
      spool::CodeRecord code;
      if (read_as(record, code)) codes_[code.id] = {code.function, code.file, code.first_line};
      return;
    }
    case spool::RecordKind::module: {
      spool::ModuleRecord module;
      if (read_as(record, module)) modules_.push_back({module.base, module.bytes, module.path, module.build_id});
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
  return id < texts_.size() && known_texts_[id] ? &texts_[id] : nullptr;
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
  for (auto module = modules_.rbegin(); module != modules_.rend(); ++module)
    if (address - module->base < module->bytes) return &*module;
  return nullptr;
}

}  // namespace vramscope::collect
