// What the ids in records mean: texts, stacks, code objects, modules, sources of ops. A definition may arrive after its use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "spool/layout.h"
#include "support/result.h"

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

  // Keeps every definition in this file as well: segments go back to the process, and a recovery must still know the names.
  // What the file already holds is taken in.
  void keep_in(const std::filesystem::path& file);

  static bool is_definition(spool::RecordKind kind) { return kind >= spool::RecordKind::string; }
  void add(const spool::RecordHead& head, std::span<const std::byte> record);
  // Writes what was added since the last call to the file.
  void store();

  // NULL: not known (yet). Id 0 is the empty text.
  const std::string* text(std::uint32_t id) const;
  const Stack* stack(std::uint64_t id) const;
  const Code* code(std::uint32_t id) const;
  const Module* module_at(std::uint64_t address) const;  // the one mapped last, where several cover it
  // Those that came since the last call.
  std::vector<spool::OpSourceRecord> take_op_sources() { return std::exchange(op_sources_, {}); }
  void return_op_source(const spool::OpSourceRecord& source) { op_sources_.push_back(source); }

 private:
  void take_in(const spool::RecordHead& head, std::span<const std::byte> record);

  std::vector<std::string> texts_;
  std::vector<bool> known_texts_;
  std::unordered_map<std::uint64_t, Stack> stacks_;
  std::unordered_map<std::uint32_t, Code> codes_;
  std::vector<Module> modules_;
  std::vector<spool::OpSourceRecord> op_sources_;
  std::vector<std::byte> unstored_;
  int file_ = -1;
};

}  // namespace vramscope::collect
