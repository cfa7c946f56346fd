# VRAMSCOPE_SANITIZE: address, thread, or empty. The injected library is never instrumented: it runs inside foreign processes.
set(VRAMSCOPE_SANITIZE "" CACHE STRING "address or thread")
add_library(vs_sanitize INTERFACE)
if(VRAMSCOPE_SANITIZE STREQUAL "address")
  target_compile_options(vs_sanitize INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(vs_sanitize INTERFACE -fsanitize=address,undefined)
elseif(VRAMSCOPE_SANITIZE STREQUAL "thread")
  target_compile_options(vs_sanitize INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(vs_sanitize INTERFACE -fsanitize=thread)
endif()
# The fuzzer is guided by coverage of what it calls, so that the libraries are instrumented too.
if(VRAMSCOPE_FUZZ)
  target_compile_options(vs_sanitize INTERFACE -fsanitize=fuzzer-no-link)
endif()
