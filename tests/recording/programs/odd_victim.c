// Uses the driver in ways that leave little room: named by the first argument. Says what it did on stdout, or in the file that
// the second argument names where stdout is closed. Every way makes ten blocks of 2 MiB.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*Alloc)(unsigned long long*, size_t);
static Alloc alloc_memory;
static int (*set_current)(void*);
static void* context;

static int (*retain)(void**, int);

static void load_driver(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) exit(90);
  ((int (*)(unsigned))dlsym(driver, "cuInit"))(0);
  retain = (int (*)(void**, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
  set_current = (int (*)(void*))dlsym(driver, "cuCtxSetCurrent");
  alloc_memory = (Alloc)dlsym(driver, "cuMemAlloc_v2");
}

// What is recorded first.
static void make_context(void) {
  retain(&context, 0);
  set_current(context);
}

static void blocks(int count) {
  unsigned long long address = 0;
  for (int i = 0; i < count; ++i)
    if (alloc_memory(&address, 2u << 20) != 0) exit(91);
}

static void* in_thread(void* data) {
  make_context();
  blocks(10);
  return data;
}

static int small_stack(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, 16384) != 0) return 92;
  if (pthread_create(&thread, &attributes, in_thread, NULL) != 0) return 93;
  pthread_join(thread, NULL);
  return 0;
}

static void in_handler(int signal) {
  (void)signal;
  make_context();
  blocks(10);
}

static int signal_stack(void) {
  static char memory[16384];
  stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
  struct sigaction action = {.sa_handler = in_handler, .sa_flags = SA_ONSTACK};
  sigaltstack(&stack, NULL);
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  return 0;
}

// The numbers 0 to 2 stay free for what the program opens next.
static int closed_output(const char* file) {
  close(0), close(1), close(2);
  make_context();
  blocks(10);
  int opened[3];
  for (int i = 0; i < 3; ++i) opened[i] = open(file, O_WRONLY | O_CREAT, 0600);
  dprintf(opened[1], "%d %d %d\n", opened[0], opened[1], opened[2]);
  return 0;
}

// The number of standard error is a file of the program's.
static int reused_error(const char* file) {
  close(2);
  if (open(file, O_WRONLY | O_CREAT, 0600) != 2) return 95;
  make_context();
  blocks(10);
  return 0;
}

static int close_everything(void) {
  make_context();
  blocks(5);
  for (int i = 3; i < 1024; ++i) close(i);
  sleep(1);  // the recorder outside looks several times
  blocks(5);
  return 0;
}

static int take_numbers(const char* file) {
  make_context();
  blocks(5);
  int mine = open(file, O_RDWR | O_CREAT, 0600);
  for (int i = 300; i < 500; ++i) dup2(mine, i);
  blocks(5);
  struct stat info;
  fstat(mine, &info);
  printf("%ld bytes\n", (long)info.st_size);
  return 0;
}

static int keep_errno(void) {
  errno = 77;
  make_context();
  blocks(10);
  printf("errno %d\n", errno);
  return 0;
}

static void* until_cancelled(void* data) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  pthread_cancel(pthread_self());
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  make_context();
  blocks(10);
  *(int*)data = 1;
  return NULL;
}

// A call of the driver is not a cancellation point.
static int cancelled(void) {
  pthread_t thread;
  int got_through = 0;
  pthread_create(&thread, NULL, until_cancelled, &got_through);
  pthread_join(thread, NULL);
  printf("through %d\n", got_through);
  return 0;
}

static int daemonized(void) {
  int ends[2];
  if (pipe(ends) != 0) return 94;
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      load_driver();
      make_context();
      blocks(10);
      if (write(ends[1], "d", 1) != 1) _exit(1);
    }
    _exit(0);
  }
  char byte = 0;
  printf("%d\n", (int)read(ends[0], &byte, 1));
  while (wait(NULL) > 0) continue;
  return 0;
}

int main(int count, char** words) {
  const char* way = count > 1 ? words[1] : "";
  const char* file = count > 2 ? words[2] : "";
  if (strcmp(way, "daemon") == 0) return daemonized();
  load_driver();
  if (strcmp(way, "small-stack") == 0) return small_stack();
  if (strcmp(way, "signal-stack") == 0) return signal_stack();
  if (strcmp(way, "closed-output") == 0) return closed_output(file);
  if (strcmp(way, "reused-error") == 0) return reused_error(file);
  if (strcmp(way, "close-everything") == 0) return close_everything();
  if (strcmp(way, "take-numbers") == 0) return take_numbers(file);
  if (strcmp(way, "errno") == 0) return keep_errno();
  if (strcmp(way, "cancelled") == 0) return cancelled();
  return 2;
}
