// What the ids in records mean: texts, stacks, code objects, modules, sources of ops. A definition may arrive after its use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "spool/layout.h"
#include "support/result.h"
#include "support/secret_hash.h"

namespace vramscope::collect {

class Definitions {
 public:
  struct Stack {
    std::vector<spool::Frame> frames;
    std::uint32_t truncated = 0;
  };
  struct Code {
    std::uint32_t function = 0, file = 0, first_line = 0;
  };
  struct Module {
    std::uint64_t base = 0, bytes = 0;
    std::uint32_t path = 0, build_id = 0;
  };

  Definitions() = default;
  Definitions(const Definitions&) = delete;
  Definitions& operator=(const Definitions&) = delete;
  ~Definitions();

  // Also stores every definition in this file: segments go back to the process, and a recovery must still know the names. Loads
  // what the file already contains.
  void keep_in(const std::filesystem::path& file);
  // Only loads (recover).
  void load(const std::filesystem::path& file);

  static bool is_definition(spool::RecordKind kind) { return kind >= spool::RecordKind::string; }
  void add(const spool::RecordHead& head, std::span<const std::byte> record);
  // Writes what was added since the last call to the file.
  void store();

  // NULL: unknown (so far). Id 0 is the empty text.
  const std::string* text(std::uint32_t id) const;
  // Ids from here on are not in sequence: no table may be sized by them.
  std::size_t dense_texts() const { return texts_.size(); }
  const Stack* stack(std::uint64_t id) const;
  const Code* code(std::uint32_t id) const;
  const Module* module_at(std::uint64_t address) const;  // the most recently mapped one, if several cover it
  // Those that arrived since the last call.
  std::vector<spool::OpSourceRecord> take_op_sources() { return std::exchange(op_sources_, {}); }
  void return_op_source(const spool::OpSourceRecord& source) { op_sources_.push_back(source); }

 private:
  std::size_t load(int file);
  void add_text(std::uint32_t id, std::string_view text);
  void add_module(const Module& module);
  void take_in(const spool::RecordHead& head, std::span<const std::byte> record);

  std::vector<std::string> texts_;
  std::vector<bool> known_texts_;
  std::map<std::uint32_t, std::string> far_texts_;  // ids far beyond the others
  std::unordered_map<std::uint64_t, Stack, support::SecretHash> stacks_;
  std::unordered_map<std::uint32_t, Code, support::SecretHash> codes_;
  struct Mapped {
    std::uint64_t end = 0;  // of the part that nothing else was mapped over
    Module module;
  };
  std::map<std::uint64_t, Mapped> modules_;  // by begin; they do not overlap
  std::vector<spool::OpSourceRecord> op_sources_;
  std::vector<std::byte> unstored_;
  int file_ = -1;
};

}  // namespace vramscope::collect
