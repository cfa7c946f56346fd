#include "symbolize/module_symbols.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "symbolize/debug_file.h"
#include "symbolize/demangle.h"
#include "symbolize/elf_file.h"

namespace vramscope::symbolize {

namespace {
constexpr std::size_t kMostNames = 0xf0000000u;  // Function::name has 32 bits
}  // namespace

// libdwfl reads the debug information of the file alone, as if it were loaded at address 0.
struct ModuleSymbols::Lines {
  Dwfl_Callbacks callbacks{};
  Dwfl* dwfl = nullptr;
  Dwfl_Module* module = nullptr;

  explicit Lines(const std::string& path) {
    callbacks.find_elf = dwfl_build_id_find_elf;
    // The standard search waits for pipes, and asks the servers of DEBUGINFOD_URLS: the recording would wait for the network, and
    // reveal which libraries are used.
    callbacks.find_debuginfo = find_debug_file;
    callbacks.section_address = dwfl_offline_section_address;
    // Checked again: the file may have been replaced since.
    const auto file = ElfFile::open(path);
    dwfl = file ? dwfl_begin(&callbacks) : nullptr;
    if (dwfl == nullptr) return;
    dwfl_report_begin(dwfl);
    const int again = fcntl(file->descriptor(), F_DUPFD_CLOEXEC, 0);
    module = again >= 0 ? dwfl_report_elf(dwfl, "", path.c_str(), again, 0, false) : nullptr;
    if (module == nullptr && again >= 0) ::close(again);
    dwfl_report_end(dwfl, nullptr, nullptr);
    if (module != nullptr && !shared_part_is_regular(module)) module = nullptr;
  }
  ~Lines() {
    if (dwfl != nullptr) dwfl_end(dwfl);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  void find(std::uint64_t address, Symbol& out) const {
    if (module == nullptr) return;
    Dwfl_Line* const line = dwfl_module_getsrc(module, address);
    int number = 0;
    const char* const file = line != nullptr ? dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr) : nullptr;
    if (file == nullptr || std::strlen(file) >= PATH_MAX) return;
    out.file = file;
    out.line = number > 0 ? static_cast<std::uint32_t>(number) : 0;
  }
};

ModuleSymbols::ModuleSymbols() = default;
ModuleSymbols::ModuleSymbols(ModuleSymbols&&) noexcept = default;
ModuleSymbols& ModuleSymbols::operator=(ModuleSymbols&&) noexcept = default;
ModuleSymbols::~ModuleSymbols() = default;

Result<ModuleSymbols> ModuleSymbols::load(const std::string& path, std::string_view build_id) {
  const auto file = ElfFile::open(path);
  if (!file) return std::unexpected(file.error());
  if (const std::string found = file->build_id(); !build_id.empty() && found != build_id)
    return fail(fmt::format("{}: has changed since it was recorded (build {} now, {} then); its functions have no names", path,
                            found.empty() ? "unknown" : found, build_id));
  ModuleSymbols out;
  out.path_ = path;
  // The full table contains everything in the table of exported symbols.
  if (!out.read_table(file->get(), SHT_SYMTAB)) out.read_table(file->get(), SHT_DYNSYM);
  std::ranges::sort(out.functions_, {}, &Function::begin);
  out.has_lines_ = file->has_section(".debug_line") || file->has_section(".gnu_debuglink");
  return out;
}

// A file has one table of each kind: further ones are ignored.
bool ModuleSymbols::read_table(Elf* elf, std::uint32_t kind) {
  Elf_Scn* section = nullptr;
  GElf_Shdr header{};
  while ((section = elf_nextscn(elf, section)) != nullptr)
    if (gelf_getshdr(section, &header) != nullptr && header.sh_type == kind) break;
  Elf_Data* const symbols = section != nullptr ? elf_getdata(section, nullptr) : nullptr;
  Elf_Scn* const texts = symbols != nullptr ? elf_getscn(elf, header.sh_link) : nullptr;
  Elf_Data* const names = texts != nullptr ? elf_getdata(texts, nullptr) : nullptr;
  if (names == nullptr || names->d_buf == nullptr || names->d_size >= kMostNames) return false;
  // As a whole: copied symbol by symbol, a name that many share would fill the memory.
  names_.assign(static_cast<const char*>(names->d_buf), names->d_size);
  GElf_Sym symbol;
  for (int i = 0; gelf_getsym(symbols, i, &symbol) != nullptr; ++i) {
    const auto type = GELF_ST_TYPE(symbol.st_info);
    if (symbol.st_value == 0 || symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC)) continue;
    if (symbol.st_name >= names_.size() || names_[symbol.st_name] == '\0') continue;
    functions_.push_back({symbol.st_value, symbol.st_value + symbol.st_size, symbol.st_name});
  }
  return !functions_.empty();
}

Symbol ModuleSymbols::find(std::uint64_t address) {
  Symbol out;
  const auto after = std::ranges::upper_bound(functions_, address, {}, &Function::begin);
  if (after != functions_.begin()) {
    const Function& function = *std::prev(after);
    // Handwritten assembly often has no size; then the function extends to the next one.
    if (address < function.end || function.begin == function.end) out.function = demangled(names_.c_str() + function.name);
  }
  if (has_lines_) {
    if (lines_ == nullptr) lines_ = std::make_unique<Lines>(path_);
    lines_->find(address, out);
  }
  return out;
}

}  // namespace vramscope::symbolize
