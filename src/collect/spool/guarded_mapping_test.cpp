#include "collect/spool/guarded_mapping.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

namespace vramscope::collect {
namespace {

constexpr std::size_t kBytes = 64 * 1024;

class GuardedMappingTest : public testing::Test {
 protected:
  GuardedMappingTest() : file_(memfd_create("spool", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(file_, 2 * kBytes), 0);
    for (const std::size_t offset : {std::size_t{0}, kBytes}) {
      auto*& memory = offset == 0 ? first_memory_ : second_memory_;
      memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, static_cast<off_t>(offset));
      static_cast<volatile char*>(memory)[100] = 'x';
    }
    first_ = std::make_unique<GuardedMapping>(first_memory_, kBytes);
    second_ = std::make_unique<GuardedMapping>(second_memory_, kBytes);
  }
  ~GuardedMappingTest() override { close(file_); }

  static char at(const std::unique_ptr<GuardedMapping>& mapping, std::size_t offset) {
    return static_cast<char>(const_cast<const volatile std::byte*>(mapping->data())[offset]);
  }

  int file_;
  void* first_memory_ = nullptr;
  void* second_memory_ = nullptr;
  std::unique_ptr<GuardedMapping> first_;
  std::unique_ptr<GuardedMapping> second_;
};

TEST_F(GuardedMappingTest, ReadsAsZerosBehindTheEndOfTheFile) {
  ASSERT_EQ(ftruncate(file_, kBytes), 0);
  EXPECT_EQ(at(second_, 100), '\0');
  EXPECT_TRUE(second_->was_cut());
  EXPECT_EQ(at(first_, 100), 'x');
  EXPECT_FALSE(first_->was_cut());
}

TEST_F(GuardedMappingTest, GuardsTheOthersWhenOneIsGone) {
  second_.reset();
  ASSERT_EQ(ftruncate(file_, 0), 0);
  EXPECT_EQ(at(first_, 100), '\0');
  EXPECT_TRUE(first_->was_cut());
}

TEST_F(GuardedMappingTest, LeavesOtherMemoryAlone) {
  auto* other = static_cast<volatile char*>(mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file_, 0));
  ASSERT_EQ(ftruncate(file_, 0), 0);
  EXPECT_EXIT((void)other[100], testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(raise(SIGBUS), testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace vramscope::collect
