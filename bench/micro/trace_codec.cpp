// Size of a trace and speed of its writer and reader on a stream that repeats like a training run.
//   trace_codec FILE EVENTS      writes FILE, reads it and prints what it took
//   trace_codec FILE             reads only
#include <cstdlib>
#include <ctime>

#include <fmt/format.h>

#include "micro/training.h"
#include "trace/reader.h"

namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace vramscope;
  if (argc < 2) return 2;
  const std::filesystem::path path = argv[1];
  if (argc > 2) {
    auto writer = trace::Writer::create(path, {});
    if (!writer) {
      fmt::print(stderr, "{}\n", writer.error().message);
      return 2;
    }
    const double began = cpu_seconds();
    bench::write_training(*writer, std::strtoull(argv[2], nullptr, 10));
    if (const Status status = writer->finish(); !status) {
      fmt::print(stderr, "{}\n", status.error().message);
      return 2;
    }
    fmt::print("write_ns_per_event {:.1f}\n", (cpu_seconds() - began) * 1e9 / static_cast<double>(writer->events()));
  }
  const double began = cpu_seconds();
  const auto reader = trace::Reader::open(path);
  if (!reader) {
    fmt::print(stderr, "{}\n", reader.error().message);
    return 2;
  }
  const double opened = cpu_seconds();
  trace::Chunk chunk;
  std::uint64_t events = 0;
  for (std::size_t i = 0; i < reader->chunks(); ++i) {
    if (const Status status = reader->read(i, chunk); !status) {
      fmt::print(stderr, "{}\n", status.error().message);
      return 2;
    }
    events += chunk.kind.size();
  }
  const double seconds = cpu_seconds() - opened;
  fmt::print("events {}\nbytes_per_event {:.3f}\nopen_ms {:.2f}\ndecode_ns_per_event {:.2f}\n", events,
             static_cast<double>(std::filesystem::file_size(path)) / static_cast<double>(events), (opened - began) * 1e3,
             seconds * 1e9 / static_cast<double>(events));
  return 0;
}
