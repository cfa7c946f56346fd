// Replaces names and paths with hashes (--anonymize). Each run has a random key, which is discarded at its end, so nobody can
// test guessed names against the hashes. Equal names have equal hashes within a run, so all analysis by name still works.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "trace/gen/schema.h"

namespace vramscope::trace {

using AnonymousKey = std::array<std::uint64_t, 2>;
AnonymousKey random_key();

class Anonymizer {
 public:
  explicit Anonymizer(AnonymousKey key) : key_(key) {}

  // Each part between slashes becomes ~ and 12 hexadecimal digits: model/dense -> ~1f2e3d4c5b6a/~0a1b2c3d4e5f. An empty
  // text stays empty, and a hash stays as it is: a recovery reads names from the first part of the trace.
  std::string hide(std::string_view text) const;
  // Our own keys stay readable.
  std::string hide_key(std::string_view key) const;

  // Which names may stay readable.
  static bool readable_setting(std::string_view key, std::string_view value);
  static bool readable_mark(std::string_view name);   // words of training loops: train, epoch, ...
  static bool readable_owner(std::string_view name);  // a well-known library

 private:
  void append_hidden(std::string& out, std::string_view text) const;

  AnonymousKey key_;
};

// SipHash-2-4, a hash whose results reveal nothing about the key.
std::uint64_t siphash(AnonymousKey key, std::string_view text);

}  // namespace vramscope::trace
