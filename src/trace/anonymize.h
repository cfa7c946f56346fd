// Replaces names and paths by hashes (--anonymize). The key is drawn for each trace and kept in memory only, so that nobody can
// try names against the hashes; equal names have equal hashes within the trace, so that all analysis by name still works.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "trace/gen/schema.h"

namespace vramscope::trace {

class Anonymizer {
 public:
  Anonymizer();  // with a random key
  explicit Anonymizer(std::array<std::uint64_t, 2> key) : key_(key) {}

  // Each part between slashes becomes ~ and 12 hexadecimal digits: model/dense -> ~1f2e3d4c5b6a/~0a1b2c3d4e5f. Empty stays empty.
  std::string hide(std::string_view text) const;
  // Keys of settings keep their first, known words: gradient_op.model/dense -> gradient_op.~.../~...
  std::string hide_key(std::string_view key) const;

  // What may stay readable.
  static bool readable_setting(std::string_view key, std::string_view value);
  static bool readable_mark(std::string_view name);   // words of training loops: train, epoch, ...
  static bool readable_owner(std::string_view name);  // a library, not a path

 private:
  void append_hidden(std::string& out, std::string_view text) const;

  std::array<std::uint64_t, 2> key_;
};

// SipHash-2-4, a hash whose results say nothing about the key.
std::uint64_t siphash(std::array<std::uint64_t, 2> key, std::string_view text);

}  // namespace vramscope::trace
