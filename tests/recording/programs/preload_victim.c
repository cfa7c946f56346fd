// A program for every kind of sanitizer: does what its arguments name, prints it, and exits with code 7.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void look_up(void) {
  void* math = dlopen("libm.so.6", RTLD_NOW);
  void* missing = dlsym(math, "no_such_function");
  printf("dl %d %d %d %d\n", math != NULL, dlsym(math, "cos") != NULL, missing == NULL, dlerror() != NULL);
  printf("next %d\n", dlsym(RTLD_NEXT, "puts") != NULL);
  dlclose(math);
}

static int shared_count;

static void* work(void* data) {
  for (int i = 0; i < 1000; ++i) {
    char* text = malloc(64);
    snprintf(text, 64, "%d", i);
    __atomic_fetch_add(&shared_count, (int)strlen(text) > 0, __ATOMIC_SEQ_CST);
    free(text);
  }
  return data;
}

static void use_threads(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  printf("threads %d\n", shared_count);
}

static void use_children(const char* program) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    execl(program, program, "dl", (char*)NULL);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("child %d %d\n", WEXITSTATUS(status), WEXITSTATUS(system("exit 5")));
}

// The driver's functions, by the names that libcuda exports.
typedef int (*Init)(unsigned);
typedef int (*Retain)(void**, int);
typedef int (*SetCurrent)(void*);
typedef int (*Alloc)(unsigned long long*, size_t);
typedef int (*Free)(unsigned long long);
enum { kBlocks = 50 };
static Alloc alloc_memory;
static Free free_memory;
static SetCurrent set_current;

static void* use_device(void* context) {
  set_current(context);
  unsigned long long blocks[kBlocks] = {0};
  for (int i = 0; i < kBlocks; ++i) alloc_memory(&blocks[i], 2u << 20);
  for (int i = 0; i < kBlocks; ++i) free_memory(blocks[i]);
  return NULL;
}

static void use_cuda(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) exit(90);
  void* context = NULL;
  ((Init)dlsym(driver, "cuInit"))(0);
  ((Retain)dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0);
  set_current = (SetCurrent)dlsym(driver, "cuCtxSetCurrent");
  alloc_memory = (Alloc)dlsym(driver, "cuMemAlloc_v2");
  free_memory = (Free)dlsym(driver, "cuMemFree_v2");
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, use_device, context);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  printf("cuda %d\n", 3 * kBlocks);
}

// Mistakes that the sanitizers are there for.
static void overflow_heap(void) {
  volatile size_t size = 10;
  char* block = malloc(size);
  memset(block, 0, size + 1);
  free(block);
}

static int racy;
static void* race_once(void* data) {
  for (int i = 0; i < 1000; ++i) ++racy;
  return data;
}
static void race(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, race_once, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
}

static void* volatile kept;
static void leak(void) {
  kept = malloc(321);
  kept = NULL;
}

static void overflow_number(int count) {
  volatile int sum = count + 0x7fffffff;  // a comparison in the same expression would be simplified, and nothing overflow
  printf("sum %d\n", sum < 0);
}

static void use_uninitialized(void) {
  int* volatile numbers = malloc(4 * sizeof *numbers);
  if (numbers[2] == 5) puts("five");
  free(numbers);
}

int main(int count, char** words) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int i = 1; i < count; ++i) {
    if (strcmp(words[i], "dl") == 0) look_up();
    if (strcmp(words[i], "threads") == 0) use_threads();
    if (strcmp(words[i], "children") == 0) use_children(words[0]);
    if (strcmp(words[i], "cuda") == 0) use_cuda();
    if (strcmp(words[i], "overflow") == 0) overflow_heap();
    if (strcmp(words[i], "race") == 0) race();
    if (strcmp(words[i], "leak") == 0) leak();
    if (strcmp(words[i], "number") == 0) overflow_number(count);
    if (strcmp(words[i], "uninitialized") == 0) use_uninitialized();
  }
  return 7;
}
