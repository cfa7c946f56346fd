// Replaces names and paths by hashes (--anonymize). The key is drawn for each run and forgotten at its end, so that nobody can
// try names against the hashes; equal names have equal hashes within the run, so that all analysis by name still works.
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

  // Each part between slashes becomes ~ and 12 hexadecimal digits: model/dense -> ~1f2e3d4c5b6a/~0a1b2c3d4e5f. Empty stays empty,
  // and so does what was hidden already: a recovery reads names from the first part of the trace.
  std::string hide(std::string_view text) const;
  // Keys of settings keep their first, known words: gradient_op.model/dense -> gradient_op.~.../~...
  std::string hide_key(std::string_view key) const;

  // What may stay readable.
  static bool readable_setting(std::string_view key, std::string_view value);
  static bool readable_mark(std::string_view name);   // words of training loops: train, epoch, ...
  static bool readable_owner(std::string_view name);  // a well-known library

 private:
  void append_hidden(std::string& out, std::string_view text) const;

  AnonymousKey key_;
};

// SipHash-2-4, a hash whose results say nothing about the key.
std::uint64_t siphash(AnonymousKey key, std::string_view text);

}  // namespace vramscope::trace
