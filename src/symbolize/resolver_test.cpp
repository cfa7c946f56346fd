#include "symbolize/resolver.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <link.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

namespace vramscope::symbolize {
namespace {

namespace fs = std::filesystem;

struct Object {
  std::string path;
  std::uint64_t base;
};

// Loaded objects by path; the program itself under its real name.
std::map<std::string, std::uint64_t> objects() {
  std::map<std::string, std::uint64_t> out;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        std::string path = info->dlpi_name;
        if (path.empty()) path = fs::read_symlink("/proc/self/exe").string();
        (*static_cast<std::map<std::string, std::uint64_t>*>(data))[path] = info->dlpi_addr;
        return 0;
      },
      &out);
  return out;
}

__attribute__((noinline)) std::vector<void*> here() {
  std::vector<void*> frames(64);
  frames.resize(static_cast<std::size_t>(backtrace(frames.data(), 64)));
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return frames;
}

std::uint64_t value(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

TEST(Resolver, NamesTheFunctionsOfThisProgramAsTheDynamicLinkerDoes) {
  Resolver resolver;
  const auto loaded = objects();
  int compared = 0;
  for (void* frame : here()) {
    Dl_info info;
    if (dladdr(static_cast<char*>(frame) - 1, &info) == 0 || info.dli_sname == nullptr) continue;
    const std::string path =
        fs::equivalent(info.dli_fname, "/proc/self/exe") ? fs::read_symlink("/proc/self/exe").string() : info.dli_fname;
    ASSERT_TRUE(loaded.contains(path)) << path;
    const Symbol found = resolver.resolve({{path, ""}, value(frame) - loaded.at(path)});
    char* const text = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, nullptr);
    // Several names may stand for one function (main and __libc_start_call_main have one, libc's functions often more).
    EXPECT_FALSE(found.function.empty());
    if (path == fs::read_symlink("/proc/self/exe").string() && text != nullptr) {
      EXPECT_EQ(found.function, text);
      ++compared;
    }
    std::free(text);
  }
  EXPECT_GE(compared, 3);
}

TEST(Resolver, FindsTheLineWhereThereIsDebugInformation) {
  const fs::path folder = fs::path(testing::TempDir()) / "symbolize_lines";
  fs::create_directories(folder);
  std::ofstream(folder / "source.c")
      << "int before(void) { return 1; }\n\nint wanted(int x) {\n  x *= 3;\n  return x + before();\n}\n";
  const std::string library = (folder / "libsource.so").string();
  const std::string compile = "cc -g -O0 -shared -fPIC -Wl,--build-id -o " + library + " " + (folder / "source.c").string();
  ASSERT_EQ(std::system(compile.c_str()), 0);
  void* const handle = dlopen(library.c_str(), RTLD_NOW);
  ASSERT_NE(handle, nullptr);
  const std::uint64_t offset = value(dlsym(handle, "wanted")) - objects().at(library);
  Resolver resolver;
  const Symbol symbol = resolver.resolve({{library, ""}, offset + 5});
  EXPECT_EQ(symbol.function, "wanted");
  EXPECT_EQ(fs::path(symbol.file).filename(), "source.c");
  EXPECT_EQ(symbol.line, 3u);

  // Without debug information the name is still there; without a symbol table the exported ones are.
  const std::string bare = (folder / "libbare.so").string();
  ASSERT_EQ(std::system(("strip --strip-all -o " + bare + " " + library).c_str()), 0);
  Resolver fresh;
  const Symbol stripped = fresh.resolve({{bare, ""}, offset + 5});
  EXPECT_EQ(stripped.function, "wanted");
  EXPECT_EQ(stripped.line, 0u);
  dlclose(handle);
}

// With it, looking for debug information would ask a server on the network, which may take minutes to answer.
TEST(Resolver, AsksNoServer) {
  const fs::path folder = fs::path(testing::TempDir()) / "symbolize_server";
  fs::create_directories(folder);
  std::ofstream(folder / "source.c") << "int wanted(void) { return 1; }\n";
  std::ofstream(folder / "absent.debug") << "x";
  const std::string library = (folder / "libsource.so").string();
  const std::string source = (folder / "source.c").string();
  ASSERT_EQ(std::system(("cc -shared -fPIC -Wl,--build-id -o " + library + " " + source).c_str()), 0);
  ASSERT_EQ(std::system(("objcopy --add-gnu-debuglink=" + (folder / "absent.debug").string() + " " + library).c_str()), 0);
  fs::remove(folder / "absent.debug");

  const int server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  ASSERT_EQ(bind(server, reinterpret_cast<sockaddr*>(&address), bytes), 0);
  ASSERT_EQ(listen(server, 1), 0);
  ASSERT_EQ(getsockname(server, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  setenv("DEBUGINFOD_URLS", ("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port))).c_str(), 1);
  setenv("DEBUGINFOD_TIMEOUT", "1", 1);
  setenv("DEBUGINFOD_CACHE_PATH", (folder / "cache").c_str(), 1);
  Resolver().resolve({{library, ""}, 0x1100});
  unsetenv("DEBUGINFOD_URLS");
  EXPECT_EQ(accept(server, nullptr, nullptr), -1) << "it has asked";
  close(server);
}

TEST(Resolver, RefusesAnotherBuild) {
  Resolver resolver;
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  EXPECT_EQ(resolver.resolve({{self, "00112233"}, 0x2000}).function, "");
  ASSERT_EQ(resolver.complaints().size(), 1u);
  EXPECT_NE(resolver.complaints()[0].find("has changed since"), std::string::npos);
}

TEST(Resolver, SurvivesFilesThatAreNoneOrDamaged) {
  const fs::path folder = fs::path(testing::TempDir()) / "symbolize_damaged";
  fs::create_directories(folder);
  std::ofstream(folder / "text") << "no ELF";
  Resolver resolver;
  EXPECT_EQ(resolver.resolve({{(folder / "text").string(), ""}, 1}).function, "");
  EXPECT_EQ(resolver.resolve({{(folder / "absent").string(), ""}, 1}).function, "");
  EXPECT_EQ(resolver.resolve({{folder.string(), ""}, 1}).function, "");

  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string bytes(200'000, '\0');
  self.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  unsigned random = 1;
  for (int round = 0; round < 40; ++round) {
    std::string damaged = bytes.substr(0, 64 + (random % bytes.size()));
    for (int i = 0; i < 20; ++i) {
      random = random * 1103515245u + 12345u;
      damaged[random / 7 % (i < 10 ? 64 : damaged.size())] = static_cast<char>(random >> 13);
    }
    const fs::path file = folder / ("damaged" + std::to_string(round));
    std::ofstream(file, std::ios::binary) << damaged;
    resolver.resolve({{file.string(), ""}, random % 100'000});
  }
}

TEST(Resolver, SeveralThreadsAtOnce) {
  Resolver resolver;
  std::vector<Address> addresses;
  for (const auto& [path, base] : objects())
    if (fs::exists(path))
      for (std::uint64_t offset = 0x1000; offset < 0x40000; offset += 0x333) addresses.push_back({{path, ""}, offset});
  const auto alone = Resolver().resolve(addresses);
  std::vector<std::thread> threads;
  std::atomic<int> differences{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const auto found = resolver.resolve(addresses);
      for (std::size_t i = 0; i < found.size(); ++i) differences += found[i].function != alone[i].function;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(differences, 0);
}

}  // namespace
}  // namespace vramscope::symbolize
