// A folder in memory for the time that the fuzzer runs, and sample traces in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "read_all.h"
#include "support/bytes.h"
#include "training.h"

namespace vramscope::fuzz {

inline const std::filesystem::path& scratch() {
  static const struct Folder {
    std::filesystem::path path;
    Folder() {
      std::string name = "/dev/shm/vramscope-fuzz-XXXXXX";
      if (::mkdtemp(name.data()) == nullptr) std::abort();
      path = name;
    }
    ~Folder() { std::filesystem::remove_all(path); }
  } folder;
  return folder.path;
}

inline support::Buffer bytes_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::filesystem::path& path, support::ByteSpan bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// A short training with everything in it: two devices, steps, layers, tags, growth, and requests that fail.
inline std::filesystem::path write_sample() {
  const auto path = scratch() / "sample.vram";
  tracegen::Training t;
  t.steps = 6;
  t.layers = 2;
  t.devices = 2;
  t.leak_bytes = 1u << 20;
  t.maker.pool.limit = 12u << 20;
  require(tracegen::write_training(path, t).has_value());
  return path;
}

}  // namespace vramscope::fuzz
