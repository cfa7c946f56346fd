// One fault of each class that a sanitizer preset must catch; the argument chooses. A build whose flags were lost would pass
// every test: this program shows that it does not.
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>

namespace {

int shared_counter = 0;

int use_after_free() {
  auto* values = static_cast<volatile int*>(std::malloc(16));
  values[0] = 1;
  std::free(const_cast<int*>(values));
  return values[0];
}

int overflow(int argument_count) {
  volatile int most = std::numeric_limits<int>::max();
  return most + argument_count;
}

int race() {
  auto count = [] {
    for (int i = 0; i < 1000; ++i) shared_counter++;
  };
  std::thread one(count), other(count);
  one.join();
  other.join();
  return shared_counter;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (std::strcmp(argv[1], "address") == 0) return use_after_free() == 0;
  if (std::strcmp(argv[1], "undefined") == 0) return overflow(argc) == 0;
  if (std::strcmp(argv[1], "thread") == 0) return race() == 0;
  return std::strcmp(argv[1], "none") == 0 ? 0 : 2;
}
