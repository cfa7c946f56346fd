#include "symbolize/demangle.h"

#include <csetjmp>

// What abi::__cxa_demangle is made of: it hands out the text piece by piece. In libsupc++.a, but not exported by libstdc++.so.
extern "C" int __gcclibcxx_demangle_callback(const char* mangled, void (*callback)(const char*, std::size_t, void*), void* data);

namespace vramscope::symbolize {

namespace {

struct Output {
  std::jmp_buf too_long;
  std::string text;
};

void append(const char* text, std::size_t bytes, void* data) {
  auto& out = *static_cast<Output*>(data);
  // A name may refer back to parts of itself, so that each ten characters double the output. The demangler cannot be
  // stopped; it holds no memory but its stack, so leaving it is safe.
  if (out.text.size() + bytes > kLongestName) std::longjmp(out.too_long, 1);
  out.text.append(text, bytes);
}

bool demangle(const char* mangled, Output& out) {
  out.text.reserve(kLongestName);  // nothing in `append` may fail
  if (setjmp(out.too_long) != 0) return false;
  return __gcclibcxx_demangle_callback(mangled, append, &out) == 0;
}

std::string shortened(std::string_view name) {
  constexpr std::string_view kEllipsis = "…";
  if (name.size() <= kLongestName) return std::string(name);
  return std::string(name.substr(0, kLongestName - kEllipsis.size())).append(kEllipsis);
}

}  // namespace

std::string demangled(std::string_view mangled) {
  // Without "_Z", the demangler would read a type: a C function named "i" is not "int".
  if (Output out; mangled.starts_with("_Z") && mangled.size() <= kLongestName && demangle(mangled.data(), out))
    return std::string(out.text);
  return shortened(mangled);
}

}  // namespace vramscope::symbolize
