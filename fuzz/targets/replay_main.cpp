// Runs a fuzz target on every file of a folder, and on each of them with a byte changed here and there.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  std::size_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream in(entry.path(), std::ios::binary);
      std::string bytes{std::istreambuf_iterator<char>(in), {}};
      const auto run = [&] { LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()); };
      run();
      ++inputs;
      const std::size_t stride = bytes.size() / 30 + 1;
      for (std::size_t place = 0; place < bytes.size(); place += stride) {
        const char before = bytes[place];
        for (const char value : {'\x00', '\xff', static_cast<char>(before + 1)}) {
          bytes[place] = value;
          run();
          ++inputs;
        }
        bytes[place] = before;
      }
    }
  }
  std::printf("%zu inputs\n", inputs);
  return inputs == 0 ? 1 : 0;
}
