// The framework's first allocation at moments when the dynamic linker must be left alone.
//   loader_victim LIBTOYFRAME constructor LIBRARY   in a thread for which the constructor of LIBRARY waits
//   loader_victim LIBTOYFRAME dlerror               between an error of dlopen and its text
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void* (*run)(const char*, size_t);

static void* allocate(void* unused) {
  (void)unused;
  return run("op", 1000);
}

// Called by the constructor of the other library.
void wait_for_an_allocation(void) {
  pthread_t thread;
  void* memory = NULL;
  if (pthread_create(&thread, NULL, allocate, NULL) == 0) pthread_join(thread, &memory);
  puts(memory != NULL ? "allocated" : "not allocated");
}

int main(int argc, char** argv) {
  void* toyframe = dlopen(argv[1], RTLD_NOW);
  if (argc < 3 || toyframe == NULL) return 2;
  run = (void* (*)(const char*, size_t))dlsym(toyframe, "toy_run");
  if (strcmp(argv[2], "constructor") == 0) return dlopen(argv[3], RTLD_NOW) != NULL ? 0 : 3;
  dlopen("a file that does not exist", RTLD_NOW);
  allocate(NULL);
  const char* error = dlerror();
  puts(error != NULL ? error : "no error");
  return 0;
}
