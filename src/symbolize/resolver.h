// Names for recorded machine addresses. Each file is read once; several files at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "symbolize/module_symbols.h"

namespace vramscope::symbolize {

struct Module {
  std::string path;
  std::string build_id;  // hexadecimal, may be empty

  bool operator==(const Module&) const = default;
};

struct Address {
  Module module;
  std::uint64_t offset = 0;  // a return address, relative to the file: the call is just before it
};

// Thread-safe.
class Resolver {
 public:
  Resolver();
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // Starts reading a file in the background, unless it was already started.
  void prepare(const Module& module);
  // Waits for the file if it is being read. Empty if nothing is known, as for a stripped static function or a deleted file.
  Symbol resolve(const Address& address);
  std::vector<Symbol> resolve(std::span<const Address> addresses);

  // One line for each file that could not be read.
  std::vector<std::string> complaints() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vramscope::symbolize
