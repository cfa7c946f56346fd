#include "serve/bundle.h"

#ifdef VRAMSCOPE_BUNDLE
// The assembler includes the file as it is.
__asm__(
    ".section .rodata\n"
    ".global vramscope_bundle_begin\n"
    ".hidden vramscope_bundle_begin\n"
    "vramscope_bundle_begin:\n"
    ".incbin \"" VRAMSCOPE_BUNDLE
    "\"\n"
    ".global vramscope_bundle_end\n"
    ".hidden vramscope_bundle_end\n"
    "vramscope_bundle_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" const char vramscope_bundle_begin[];
extern "C" const char vramscope_bundle_end[];
#endif

namespace vramscope::serve {

Result<std::string_view> bundle() {
#ifdef VRAMSCOPE_BUNDLE
  return std::string_view(vramscope_bundle_begin, static_cast<std::size_t>(vramscope_bundle_end - vramscope_bundle_begin));
#else
  return fail(
      "this program was built without its user interface; run 'npm ci && npm run build' in ui/ and build again ('make build' "
      "does both)");
#endif
}

}  // namespace vramscope::serve
