#include "trace/anonymize.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <span>

namespace vramscope::trace {
namespace {

constexpr unsigned kDigits = 12;
constexpr std::string_view kHex = "0123456789abcdef";

bool is_hidden(std::string_view part) {
  return part.size() == kDigits + 1 && part.starts_with('~') && part.find_first_not_of(kHex, 1) == part.npos;
}

struct Sip {
  std::uint64_t v0, v1, v2, v3;

  void rounds(int count) {
    for (; count > 0; --count) {
      v0 += v1;
      v1 = std::rotl(v1, 13) ^ v0;
      v0 = std::rotl(v0, 32);
      v2 += v3;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  }
  void add(std::uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }
};

// Settings whose key is readable; those of the second list also with their value, unless it has a slash.
constexpr std::string_view kKnownKeys[] = {"process.", "host", "keras."};
constexpr std::string_view kKnownValues[] = {
    "process.pid", "process.start", "process.exit",  "process.signal", "process.end", "sample_hz", "clock",    "vramscope.",
    "tensorflow.", "keras.version", "keras.backend", "keras.dtype",    "tf_keras.",   "torch.",    "pytorch.", "jax.",
    "xla.",        "cuda.",         "driver.",       "nvml.",          "device.",     "capture.",  "hook.",    "env."};
// Libraries that everybody has. Others are named by their file, as is the program itself.
constexpr std::string_view kOwners[] = {"NCCL",    "cuBLAS",  "cuDNN",        "cuFFT",      "cuSPARSE", "cuSOLVER",
                                        "cuRAND",  "NVSHMEM", "TensorRT",     "CUPTI",      "RMM",      "TensorFlow",
                                        "PyTorch", "XLA",     "CUDA runtime", "CUDA driver"};
constexpr std::string_view kMarkWords[] = {"train",   "fit",      "epoch",     "step",      "batch", "evaluate", "validate",
                                           "test",    "predict",  "import",    "build",     "trace", "compile",  "autotune",
                                           "input",   "forward",  "backward",  "optimizer", "save",  "load",     "other",
                                           "retrace", "gradient", "gradients", "loop",      "again", "more",     "variables"};

bool begins_with_any(std::string_view text, std::span<const std::string_view> starts) {
  return std::ranges::any_of(starts, [&](std::string_view start) { return text.starts_with(start); });
}

}  // namespace

std::uint64_t siphash(AnonymousKey key, std::string_view text) {
  Sip sip{key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du, key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
  const std::uint64_t length = text.size();
  for (; text.size() >= 8; text.remove_prefix(8)) {
    std::uint64_t word;
    std::memcpy(&word, text.data(), sizeof(word));
    sip.add(word);
  }
  std::uint64_t last = length << 56;
  if (!text.empty()) std::memcpy(&last, text.data(), text.size());
  sip.add(last);
  sip.v2 ^= 0xff;
  sip.rounds(4);
  return sip.v0 ^ sip.v1 ^ sip.v2 ^ sip.v3;
}

AnonymousKey random_key() {
  AnonymousKey key{};
  if (getrandom(key.data(), sizeof(key), 0) == static_cast<ssize_t>(sizeof(key))) return key;
  std::random_device device;
  for (std::uint64_t& word : key) word = std::uint64_t{device()} << 32 | device();
  return key;
}

void Anonymizer::append_hidden(std::string& out, std::string_view text) const {
  if (is_hidden(text)) {
    out += text;
    return;
  }
  std::uint64_t hash = siphash(key_, text);
  out += '~';
  for (unsigned i = 0; i < kDigits; ++i, hash >>= 4) out += kHex[hash & 15];
}

std::string Anonymizer::hide(std::string_view text) const {
  std::string out;
  while (!text.empty()) {
    const std::size_t slash = text.find('/');
    const std::string_view part = text.substr(0, slash);
    if (!part.empty()) append_hidden(out, part);
    if (slash == text.npos) break;
    out += '/';
    text.remove_prefix(slash + 1);
  }
  return out;
}

std::string Anonymizer::hide_key(std::string_view key) const {
  const bool known = begins_with_any(key, kKnownValues) || begins_with_any(key, kKnownKeys);
  return known ? std::string(key) : hide(key);
}

bool Anonymizer::readable_setting(std::string_view key, std::string_view value) {
  return begins_with_any(key, kKnownValues) && value.find('/') == value.npos;
}

bool Anonymizer::readable_mark(std::string_view name) {
  const auto known = [](std::string_view word) { return std::ranges::find(kMarkWords, word) != std::end(kMarkWords); };
  const std::size_t at = name.find('@');  // what a step was, and by the number of which optimizer or variable
  if (at == name.npos) return known(name);
  const std::string_view what = name.substr(0, at), by = name.substr(at + 1);
  return (what.empty() || known(what)) && by.find_first_not_of("0123456789+v") == by.npos;
}

bool Anonymizer::readable_owner(std::string_view name) { return std::ranges::find(kOwners, name) != std::end(kOwners); }

}  // namespace vramscope::trace
