// A program that records known events and keeps count of them in a page of its own, which survives it: the oracle of the crash
// tests. Thread t allocates block 0, 1, 2, ... at address (t + 1) << 40 | n << 8 with n + 1 bytes requested, and frees block n -
// 8 before it allocates block n. After each call has returned, the thread's counter goes up.
//
//   spool_producer COUNTERS THREADS EVENTS_PER_THREAD [option ...]
//     pause=N      microseconds to sleep after every 64 events
//     rate=N       events of all threads in a second, at most; an allocation and a free are two
//     sizes=N      different sizes requested, as in a training run (default: each block has its own)
//     fork         forks in the middle; the child records as well
//     exec         when done, executes itself once more without this option
//     threads-end  each event batch runs in a thread of its own
//     segments=N   with threads-end: a batch begins only while at most N segments of the spool are in use
//     gate=FILE    half of the events come only when FILE exists
//     oom          ends with a failed request
//     print        says "done" on stdout
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "record/options.h"
#include "record/recorder.h"
#include "spool/layout.h"

namespace {

namespace record = vramscope::record;
namespace spool = vramscope::spool;

constexpr std::uint64_t kLive = 8;
constexpr std::uint64_t kMaxThreads = 64;

struct Options {
  std::uint64_t pause_us = 0;
  std::uint64_t sizes = ~std::uint64_t{0};
  std::uint64_t ns_per_event = 0;  // of one thread
  std::uint64_t segments = 0;
  std::string gate;
  bool fork = false, exec = false, threads_end = false, oom = false, print = false;
};

std::uint8_t producer_pool() {
  return record::pool({0x1000, "producer_pool", -1, record::Level::tensor, record::Memory::host, record::Framework::none});
}

std::uint64_t address_of(std::uint64_t thread, std::uint64_t n) { return (thread + 1) << 40 | n << 8; }

void one_event(std::uint64_t thread, std::uint64_t n, std::uint64_t sizes, std::atomic<std::uint64_t>& counter) {
  static const char* const kOps[] = {"model/dense/MatMul", "model/dense/Relu", "gradients/MatMul_grad", "Adam/update"};
  if (n >= kLive) {
    record::FreeEvent event;
    event.pool = producer_pool();
    event.address = address_of(thread, n - kLive);
    event.bytes = (n - kLive) % 1000 + 256;
    record::free(event);
  }
  record::AllocEvent event;
  event.pool = producer_pool();
  event.address = address_of(thread, n);
  event.requested = n % sizes + 1;
  event.granted = n % 1000 + 256;
  event.op = record::intern(kOps[n % 4]);
  event.shape = record::intern(("[" + std::to_string(n % 97) + "]").c_str());
  record::alloc(event);
  counter.store(n + 1, std::memory_order_release);
}

void wait_for(const std::function<bool()>& condition) {
  while (!condition()) usleep(1000);
}

// The spool of this process, as the collector sees it.
std::uint64_t segments_in_use() {
  static const std::string kPath = std::string(std::getenv(spool::kEnvSpool)) + "/" + std::to_string(getpid()) + "-0.spool";
  std::ifstream file(kPath, std::ios::binary);
  std::uint64_t used = 0;
  spool::SegmentHeader head;
  for (std::uint64_t at = spool::kHeaderBytes;
       file.seekg(static_cast<std::streamoff>(at)) && file.read(reinterpret_cast<char*>(&head), sizeof head);
       at += spool::kSegmentBytes)
    used += head.state != spool::SegmentState::free;
  return used;
}

void produce(std::uint64_t thread, std::uint64_t from, std::uint64_t to, const Options& options,
             std::atomic<std::uint64_t>& counter) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t n = from; n < to; ++n) {
    one_event(thread, n, options.sizes, counter);
    if (options.pause_us > 0 && n % 64 == 63) usleep(static_cast<useconds_t>(options.pause_us));
    if (options.ns_per_event > 0 && n % 64 == 63)
      std::this_thread::sleep_until(begin + 2 * (n - from) * std::chrono::nanoseconds(options.ns_per_event));
  }
}

void produce_in_short_threads(std::uint64_t thread, std::uint64_t count, const Options& options,
                              std::atomic<std::uint64_t>& counter) {
  constexpr std::uint64_t kBatch = 50;
  for (std::uint64_t n = 0; n < count; n += kBatch) {
    if (options.segments > 0) wait_for([&] { return segments_in_use() <= options.segments; });
    std::thread([&] { produce(thread, n, std::min(n + kBatch, count), options, counter); }).join();
  }
}

void produce_in_halves(std::uint64_t thread, std::uint64_t count, const Options& options, std::atomic<std::uint64_t>& counter) {
  produce(thread, 0, count / 2, options, counter);
  if (!options.gate.empty()) wait_for([&] { return access(options.gate.c_str(), F_OK) == 0; });
  produce(thread, count / 2, count, options, counter);
}

Options parse(int argc, char** argv, std::uint64_t threads) {
  Options options;
  for (int i = 4; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("pause=")) options.pause_us = std::strtoull(word.c_str() + 6, nullptr, 10);
    if (word.starts_with("sizes=")) options.sizes = std::max(1ull, std::strtoull(word.c_str() + 6, nullptr, 10));
    if (word.starts_with("rate=")) options.ns_per_event = 1'000'000'000 * threads / std::strtoull(word.c_str() + 5, nullptr, 10);
    if (word.starts_with("segments=")) options.segments = std::strtoull(word.c_str() + 9, nullptr, 10);
    if (word.starts_with("gate=")) options.gate = word.substr(5);
    options.fork |= word == "fork";
    options.exec |= word == "exec";
    options.threads_end |= word == "threads-end";
    options.oom |= word == "oom";
    options.print |= word == "print";
  }
  return options;
}

std::atomic<std::uint64_t>* map_counters(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, 4096) != 0) return nullptr;
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return page == MAP_FAILED ? nullptr : static_cast<std::atomic<std::uint64_t>*>(page);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  record::read_environment();
  std::atomic<std::uint64_t>* counters = map_counters(argv[1]);
  const std::uint64_t threads = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t count = std::strtoull(argv[3], nullptr, 10);
  const Options options = parse(argc, argv, threads);
  if (counters == nullptr || threads == 0 || threads >= kMaxThreads) return 2;

  std::vector<std::thread> workers;
  for (std::uint64_t t = 0; t < threads; ++t)
    workers.emplace_back([&, t] {
      if (options.threads_end)
        produce_in_short_threads(t, count, options, counters[t]);
      else
        produce_in_halves(t, count, options, counters[t]);
    });
  pid_t child = 0;
  if (options.fork) {
    usleep(2000);
    child = fork();
    if (child == 0) {
      produce(kMaxThreads, 0, count, options, counters[kMaxThreads]);
      _exit(7);
    }
  }
  for (auto& worker : workers) worker.join();
  if (child > 0) {
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) return 3;
  }
  if (options.oom) {
    record::AllocEvent event;
    event.pool = producer_pool();
    event.requested = 5ull << 30;
    event.op = record::intern("model/too_big/MatMul");
    event.flags = vramscope::spool::kFlagFinal;
    record::oom(event);
  }
  if (options.exec) {
    std::vector<char*> words;
    for (int i = 0; i < argc; ++i)
      if (std::strcmp(argv[i], "exec") != 0) words.push_back(argv[i]);
    words.push_back(nullptr);
    execv("/proc/self/exe", words.data());
    return 4;
  }
  if (options.print) std::puts("done");
  return 0;
}
