#include "symbolize/module_symbols.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "symbolize/elf_file.h"

namespace vramscope::symbolize {

namespace {

std::string demangled(const char* name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string out = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return out;
}

}  // namespace

// libdwfl reads the debug information of the file alone, as if it were loaded at address 0.
struct ModuleSymbols::Lines {
  Dwfl_Callbacks callbacks{};
  Dwfl* dwfl = nullptr;
  Dwfl_Module* module = nullptr;

  explicit Lines(const std::string& path) {
    callbacks.find_elf = dwfl_build_id_find_elf;
    callbacks.find_debuginfo = dwfl_standard_find_debuginfo;
    callbacks.section_address = dwfl_offline_section_address;
    dwfl = dwfl_begin(&callbacks);
    if (dwfl == nullptr) return;
    dwfl_report_begin(dwfl);
    module = dwfl_report_elf(dwfl, "", path.c_str(), -1, 0, false);
    dwfl_report_end(dwfl, nullptr, nullptr);
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
    if (file == nullptr) return;
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
    return fail(fmt::format("{}: has changed since it was recorded (build {} now, {} then); its functions stay without names",
                            path, found.empty() ? "unknown" : found, build_id));
  ModuleSymbols out;
  out.path_ = path;
  // The full table has everything that the table of exported symbols has.
  for (const GElf_Word wanted : {GElf_Word{SHT_SYMTAB}, GElf_Word{SHT_DYNSYM}}) {
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(file->get(), section)) != nullptr;) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) == nullptr || header.sh_type != wanted || header.sh_entsize == 0) continue;
      Elf_Data* const data = elf_getdata(section, nullptr);
      if (data == nullptr) continue;
      const auto count = static_cast<int>(std::min<std::uint64_t>(header.sh_size / header.sh_entsize, 1u << 30));
      for (int i = 0; i < count; ++i) {
        GElf_Sym symbol;
        if (gelf_getsym(data, i, &symbol) == nullptr || symbol.st_value == 0 || symbol.st_shndx == SHN_UNDEF) continue;
        const auto type = GELF_ST_TYPE(symbol.st_info);
        if (type != STT_FUNC && type != STT_GNU_IFUNC) continue;
        const char* const name = elf_strptr(file->get(), header.sh_link, symbol.st_name);
        if (name == nullptr || *name == '\0' || out.names_.size() > 0xf0000000u) continue;
        out.functions_.push_back(
            {symbol.st_value, symbol.st_value + symbol.st_size, static_cast<std::uint32_t>(out.names_.size())});
        out.names_.append(name).push_back('\0');
      }
    }
    if (!out.functions_.empty()) break;
  }
  std::ranges::sort(out.functions_, {}, &Function::begin);
  out.has_lines_ = file->has_section(".debug_line") || file->has_section(".gnu_debuglink");
  return out;
}

Symbol ModuleSymbols::find(std::uint64_t address) {
  Symbol out;
  const auto after = std::ranges::upper_bound(functions_, address, {}, &Function::begin);
  if (after != functions_.begin()) {
    const Function& function = *std::prev(after);
    // Hand-written assembler often has no size; then the function reaches to the next one.
    if (address < function.end || function.begin == function.end) out.function = demangled(names_.c_str() + function.name);
  }
  if (has_lines_) {
    if (lines_ == nullptr) lines_ = std::make_unique<Lines>(path_);
    lines_->find(address, out);
  }
  return out;
}

}  // namespace vramscope::symbolize
