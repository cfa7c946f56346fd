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
  std::uint64_t offset = 0;  // a return address, as in the file: the call lies before it
};

// May be used by several threads.
class Resolver {
 public:
  Resolver();
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // Starts to read a file in the background, if that has not been done.
  void prepare(const Module& module);
  // Waits for the file if it is being read. Empty where nothing is known: a stripped static function, a file that is gone.
  Symbol resolve(const Address& address);
  std::vector<Symbol> resolve(std::span<const Address> addresses);

  // One line for each file that could not be read.
  std::vector<std::string> complaints() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vramscope::symbolize
