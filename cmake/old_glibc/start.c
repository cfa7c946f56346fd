/* Runs the constructors of the program. The start code of glibc 2.34 and later leaves that to __libc_start_main; an older one
 * only calls the function that it is given for it, so that a program linked here would start there without its constructors. */
typedef int Main(int, char**, char**);
typedef void Constructor(int, char**, char**);

extern Constructor* __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor* __init_array_end[] __attribute__((visibility("hidden")));
void _init(void);

int __real___libc_start_main(Main* main, int argc, char** argv, Constructor* init, void (*fini)(void), void (*rtld_fini)(void),
                             void* stack_end);
int __wrap___libc_start_main(Main* main, int argc, char** argv, Constructor* init, void (*fini)(void), void (*rtld_fini)(void),
                             void* stack_end);

static void run_constructors(int argc, char** argv, char** environment) {
  _init();
  for (Constructor** each = __init_array_start; each != __init_array_end; ++each) (*each)(argc, argv, environment);
}

int __wrap___libc_start_main(Main* main, int argc, char** argv, Constructor* init, void (*fini)(void), void (*rtld_fini)(void),
                             void* stack_end) {
  return __real___libc_start_main(main, argc, argv, init ? init : run_constructors, fini, rtld_fini, stack_end);
}
