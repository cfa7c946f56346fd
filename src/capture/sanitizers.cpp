// A hook that the address sanitizer calls at start-up. Its shared runtime ends a program in which another library comes before
// it, as ours does when preloaded. A program that defines this hook itself takes precedence; `vramscope run` sets the same
// option in ASAN_OPTIONS.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() { return "verify_asan_link_order=0"; }
