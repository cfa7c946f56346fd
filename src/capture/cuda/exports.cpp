// The names that the library exports before the driver's and glibc's. Machine code, because a jump must preserve the caller's
// return address: the wrappers use it to identify the allocating library, and glibc to identify the caller of a lookup.
#include "capture/cuda/driver.h"

#if !defined(__x86_64__)
#error "add the entries for this processor"
#endif

#define VS_HOOK(symbol, base, since, per_thread, role, parameters, what)                                          \
  __asm__(".text\n.p2align 4\n.globl " #symbol "\n.type " #symbol ", @function\n.hidden vs_" #symbol "\n" #symbol \
          ":\n.cfi_startproc\nendbr64\njmp vs_" #symbol "\n.cfi_endproc\n.size " #symbol ", . - " #symbol "\n");
#include "capture/cuda/hooks.inc"

// NAME(handle %rdi, symbol %rsi, version %rdx): a symbol like "cuMemAlloc" goes where NAME_target says, any other straight on.
// Only `cu` followed by a capital letter: cudnnCreate, curl_easy_init and cublasCreate are not driver functions. `GetP` is the
// start of what frameworks look up in their plugins (Framework::plugin_entry).
// clang-format off
#define VS_LOOKUP(name) \
  __asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" \
          ".hidden vs_real_" #name "\n.hidden vs_resolve_" #name "\n.hidden vs_" #name "_target\n" \
          ".globl vs_" #name "_entry\n.hidden vs_" #name "_entry\nvs_" #name "_entry:\n" \
          #name ":\n" \
          ".cfi_startproc\n" \
          "  endbr64\n" \
          "  testq %rsi, %rsi\n" \
          "  jz 1f\n" \
          "  cmpb $'c', (%rsi)\n" \
          "  jne 4f\n" \
          "  cmpb $'u', 1(%rsi)\n" \
          "  jne 1f\n" \
          "  movzbl 2(%rsi), %eax\n" \
          "  subl $'A', %eax\n" \
          "  cmpl $25, %eax\n" \
          "  ja 1f\n" \
          "5:\n" \
          "  pushq %rdi\n.cfi_adjust_cfa_offset 8\n" \
          "  pushq %rsi\n.cfi_adjust_cfa_offset 8\n" \
          "  pushq %rdx\n.cfi_adjust_cfa_offset 8\n" \
          "  movq 24(%rsp), %rdx\n" \
          "  call vs_" #name "_target\n" \
          "2:\n" \
          "  popq %rdx\n.cfi_adjust_cfa_offset -8\n" \
          "  popq %rsi\n.cfi_adjust_cfa_offset -8\n" \
          "  popq %rdi\n.cfi_adjust_cfa_offset -8\n" \
          "  jmp *%rax\n" \
          "1:\n" \
          "  movq vs_real_" #name "(%rip), %rax\n" \
          "  testq %rax, %rax\n" \
          "  jz 3f\n" \
          "  jmp *%rax\n" \
          "3:\n" \
          "  pushq %rdi\n.cfi_adjust_cfa_offset 8\n" \
          "  pushq %rsi\n.cfi_adjust_cfa_offset 8\n" \
          "  pushq %rdx\n.cfi_adjust_cfa_offset 8\n" \
          "  call vs_resolve_" #name "\n" \
          "  jmp 2b\n" \
          ".cfi_adjust_cfa_offset -24\n" \
          "4:\n" \
          "  cmpb $'G', (%rsi)\n" \
          "  jne 1b\n" \
          "  cmpb $'e', 1(%rsi)\n" \
          "  jne 1b\n" \
          "  cmpb $'t', 2(%rsi)\n" \
          "  jne 1b\n" \
          "  cmpb $'P', 3(%rsi)\n" \
          "  je 5b\n" \
          "  jmp 1b\n" \
          ".cfi_endproc\n" \
          ".size " #name ", . - " #name "\n")
// clang-format on

VS_LOOKUP(dlsym);
VS_LOOKUP(dlvsym);
