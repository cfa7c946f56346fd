// Libraries whose author wants to stall the reader or fill its memory.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include "symbolize/demangle.h"
#include "symbolize/resolver.h"

namespace vramscope::symbolize {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const auto& value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

// One per test: they run at the same time.
fs::path new_folder() {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string("elf_") + test.test_suite_name() + "_" + test.name();
  std::ranges::replace(name, '/', '_');
  const fs::path folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::uint64_t memory_used() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
}

std::string function_symbols(std::size_t count, std::uint64_t first) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    Elf64_Sym symbol{};
    symbol.st_name = 1;
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = 1;
    symbol.st_value = first + 16 * i;
    symbol.st_size = 16;
    out += bytes_of(symbol);
  }
  return out;
}

// A library with symbol tables at will; `names` is the string table of all of them.
class Forged {
 public:
  explicit Forged(const std::string& names) {
    sections_.push_back({});
    add(SHT_STRTAB, names);
  }
  void add(Elf64_Word type, const std::string& content) {
    add_again(type, sizeof(Elf64_Ehdr) + content_.size(), content.size());
    content_ += content;
  }
  // A section that shares its bytes with another.
  void add_again(Elf64_Word type, std::uint64_t offset, std::uint64_t size) {
    Elf64_Shdr header{};
    header.sh_type = type;
    header.sh_offset = offset;
    header.sh_size = size;
    header.sh_link = 1;
    header.sh_entsize = type == SHT_STRTAB ? 0 : sizeof(Elf64_Sym);
    header.sh_addralign = 1;
    sections_.push_back(header);
  }
  const Elf64_Shdr& last() const { return sections_.back(); }
  std::string write(const fs::path& path) const {
    Elf64_Ehdr head{};
    std::copy_n(ELFMAG, SELFMAG, head.e_ident);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_ident[EI_VERSION] = EV_CURRENT;
    head.e_type = ET_DYN;
    head.e_machine = EM_X86_64;
    head.e_version = EV_CURRENT;
    head.e_ehsize = sizeof head;
    head.e_shentsize = sizeof(Elf64_Shdr);
    head.e_shnum = static_cast<Elf64_Half>(sections_.size());
    const std::string padding((8 - content_.size() % 8) % 8, '\0');
    head.e_shoff = sizeof head + content_.size() + padding.size();
    std::ofstream file(path, std::ios::binary);
    file << bytes_of(head) << content_ << padding;
    for (const Elf64_Shdr& section : sections_) file << bytes_of(section);
    return path.string();
  }

 private:
  std::vector<Elf64_Shdr> sections_;
  std::string content_;
};

std::string with_zeros(std::string_view name) { return std::string(1, '\0').append(name).append(1, '\0'); }

std::string name_in(const std::string& library) { return Resolver().resolve({{library, ""}, 0x1001}).function; }

TEST(HostileElf, AnOrdinaryForgedFileIsRead) {
  Forged file(with_zeros("_ZN5hello5worldEv"));
  file.add(SHT_SYMTAB, function_symbols(10, 0x1000));
  EXPECT_EQ(name_in(file.write(new_folder() / "lib.so")), "hello::world()");
}

TEST(HostileElf, OneSymbolTableOfAKindIsRead) {
  Forged file(with_zeros("f"));
  for (int i = 0; i < 300; ++i) file.add(SHT_SYMTAB, function_symbols(100, 0x1000));
  const auto symbols = ModuleSymbols::load(file.write(new_folder() / "lib.so"), "");
  ASSERT_TRUE(symbols.has_value());
  EXPECT_EQ(symbols->functions(), 100u);
}

TEST(HostileElf, TablesThatShareTheirBytesAreRefused) {
  Forged file(with_zeros("f"));
  file.add(SHT_SYMTAB, function_symbols(10'000, 0x1000));
  const Elf64_Shdr table = file.last();
  for (int i = 0; i < 500; ++i) file.add_again(SHT_SYMTAB, table.sh_offset, table.sh_size);
  EXPECT_FALSE(ModuleSymbols::load(file.write(new_folder() / "lib.so"), "").has_value());
}

TEST(HostileElf, ANameSharedByManySymbolsIsKeptOnce) {
  Forged file(with_zeros(std::string(1 << 20, 'x')));
  file.add(SHT_SYMTAB, function_symbols(1000, 0x1000));
  const std::string library = file.write(new_folder() / "lib.so");
  const std::uint64_t before = memory_used();
  EXPECT_EQ(name_in(library).size(), kLongestName);
  EXPECT_LT(memory_used() - before, 64u << 20);
}

// std::pair<std::pair<..., S0_>, S1_>: every level doubles the name.
std::string doubling_name(int levels) {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string name = "_Z1fSt4pairI";
  for (int i = 0; i < levels; ++i) name += "S_I";
  name += "iiE";
  for (int i = 0; i < levels; ++i) name.append("S").append(1, kDigits[static_cast<std::size_t>(i)]).append("_E");
  return name;
}

TEST(HostileElf, ANameThatDoublesItselfIsShownMangled) {
  EXPECT_EQ(demangled(doubling_name(1)), "f(std::pair<std::pair<int, int>, std::pair<int, int> >)");
  // 21 levels: 70 MB, today's machines take a second. 34: memory ends before the name does.
  for (const int levels : {21, 34}) {
    const std::string name = doubling_name(levels);
    Forged file(with_zeros(name));
    file.add(SHT_SYMTAB, function_symbols(1, 0x1000));
    ASSERT_EQ(name_in(file.write(new_folder() / "lib.so")), name);
  }
}

TEST(HostileElf, LongNamesAreCut) {
  for (const char* piece : {"i", "P", "1a", "St4pairI", "N1a"}) {
    std::string name = "_Z1f";
    while (name.size() < (4u << 20)) name += piece;
    const auto began = std::chrono::steady_clock::now();
    const std::string shown = demangled(name);
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2)) << piece;
    EXPECT_EQ(shown.size(), kLongestName);
    EXPECT_TRUE(shown.starts_with("_Z1f") && shown.ends_with("…")) << piece;
  }
}

TEST(HostileElf, ANameOfCIsNotAType) {
  Forged file(with_zeros("i"));
  file.add(SHT_SYMTAB, function_symbols(1, 0x1000));
  EXPECT_EQ(name_in(file.write(new_folder() / "lib.so")), "i");
}

// A library whose debug information was moved to the file "apart.debug" next to it.
class DebugLink : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = new_folder();
    library_ = (folder_ / "lib.so").string();
    apart_ = folder_ / "apart.debug";
    std::ofstream(folder_ / "source.c") << "int wanted(int x) {\n  return x;\n}\n";
    const std::string enter = "cd " + folder_.string() + " && ";
    const std::string compile = enter + "cc -g -O0 -shared -fPIC -Wl," + GetParam() + " -o lib.so source.c";
    ASSERT_EQ(std::system(compile.c_str()), 0);
    const std::string split = enter +
                              "nm lib.so | sed -n 's/ T wanted//p' > place && objcopy --only-keep-debug lib.so apart.debug"
                              " && strip --strip-debug lib.so && objcopy --add-gnu-debuglink=apart.debug lib.so";
    ASSERT_EQ(std::system(split.c_str()), 0);
    std::ifstream(folder_ / "place") >> std::hex >> wanted_;
    ASSERT_NE(wanted_, 0u);
  }
  Symbol resolve() const { return Resolver().resolve({{library_, ""}, wanted_ + 5}); }

  fs::path folder_, apart_;
  std::string library_;
  std::uint64_t wanted_ = 0;
};

TEST_P(DebugLink, IsFollowed) {
  EXPECT_EQ(resolve().line, 1u);
  fs::create_directory(folder_ / ".debug");
  fs::rename(apart_, folder_ / ".debug" / "apart.debug");
  EXPECT_EQ(resolve().line, 1u);
}

TEST_P(DebugLink, ToAnotherFileIsIgnored) {
  ASSERT_EQ(std::system(("cp /bin/true " + apart_.string()).c_str()), 0);
  const Symbol symbol = resolve();
  EXPECT_EQ(symbol.function, "wanted");
  EXPECT_EQ(symbol.line, 0u);
}

TEST_P(DebugLink, ToAPipeIsNotOpened) {
  fs::remove(apart_);
  ASSERT_EQ(mkfifo(apart_.c_str(), 0600), 0);
  const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  ASSERT_GE(inotify_add_watch(watch, apart_.c_str(), IN_OPEN), 0);
  auto answer = std::async(std::launch::async, [this] { return resolve(); });
  const bool hangs = answer.wait_for(std::chrono::seconds(20)) != std::future_status::ready;
  EXPECT_FALSE(hangs);
  char event[4096];
  EXPECT_EQ(read(watch, event, sizeof event), -1) << "it was opened";
  close(watch);
  const int release = hangs ? open(apart_.c_str(), O_RDWR | O_CLOEXEC) : -1;
  EXPECT_EQ(answer.get().function, "wanted");
  if (release >= 0) close(release);
}

INSTANTIATE_TEST_SUITE_P(Checked, DebugLink, testing::Values("--build-id", "--build-id=none"),
                         [](const auto& chosen) { return std::string(chosen.index == 0 ? "ByBuildId" : "ByChecksum"); });

}  // namespace
}  // namespace vramscope::symbolize
