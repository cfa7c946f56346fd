// Old versions of glibc's symbols, so that the injected library loads on glibc 2.28 although it is built on a newer one.
// Include it in every file of the inside half that uses one of these functions. tools/check_inject.py checks the result.
#pragma once

#if defined(__x86_64__) && defined(__linux__)
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver dlvsym,dlvsym@GLIBC_2.2.5");
__asm__(".symver dladdr,dladdr@GLIBC_2.2.5");
__asm__(".symver dlclose,dlclose@GLIBC_2.2.5");
#endif
