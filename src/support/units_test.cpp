#include "support/units.h"

#include <gtest/gtest.h>

namespace vramscope::support {
namespace {

TEST(Units, ReadsSizesAsPeopleWriteThem) {
  EXPECT_EQ(parse_size("512").value(), 512u);
  EXPECT_EQ(parse_size("64K").value(), 65536u);
  EXPECT_EQ(parse_size("512MiB").value(), 512u << 20);
  EXPECT_EQ(parse_size("1.5 GiB").value(), 3ull << 29);
  EXPECT_EQ(parse_size("2tib").value(), 2ull << 40);
  EXPECT_EQ(parse_size("100MB").value(), 100'000'000u);
  EXPECT_EQ(parse_size("1.5 kB").value(), 1500u);
}

TEST(Units, RefusesWhatIsNoSize) {
  for (const char* text : {"", "MiB", "-1", "12 parsecs", "1e400", "nan", "9999999TiB", "1 MiB x", "-5MiB", "1e400GiB", "NaN",
                           "infMiB", "99999999999999999999999"})
    EXPECT_FALSE(parse_size(text).has_value()) << text;
}

TEST(Units, WritesSizes) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1,023 B");
  EXPECT_EQ(format_size(1536), "1.5 KiB");
  EXPECT_EQ(format_size(272'420'864), "259.8 MiB");
  EXPECT_EQ(format_size(256 << 10), "256.0 KiB");
  EXPECT_EQ(format_size(7'602'176), "7.3 MiB");  // 7.25 exactly: the page and the terminal round it alike
  EXPECT_EQ(format_size(5ull << 30), "5,120.0 MiB");
  EXPECT_EQ(format_size(1'100'000ull << 20), "1,074.2 GiB");
  EXPECT_EQ(format_in((1u << 20) - 1, 1 << 20), "1.0");
  EXPECT_EQ(format_in(140'830ull << 20, 1 << 20), "140,830.0");
  EXPECT_EQ(format_count(1'234'567), "1,234,567");
  EXPECT_EQ(format_count(999), "999");
}

TEST(Units, WritesDurations) {
  EXPECT_EQ(format_duration(12), "12 µs");
  EXPECT_EQ(format_duration(850'000), "850.0 ms");
  EXPECT_EQ(format_duration(6'244'485), "6.2 s");
  EXPECT_EQ(format_duration(200'000'000), "200.0 s");
  EXPECT_EQ(format_duration(7'500'000'000), "125.0 min");
  EXPECT_EQ(format_duration(18'000'000'000), "5.0 h");
}

TEST(Units, ShortCommand) {
  EXPECT_EQ(short_command("/usr/bin/python3 -u src/train.py --eager"), "train.py --eager");
  EXPECT_EQ(short_command("train.py"), "train.py");
  EXPECT_EQ(short_command("/opt/bin/trainer --data /d/x"), "trainer --data /d/x");
  EXPECT_EQ(short_command("python -m trainer"), "python -m trainer");
  EXPECT_EQ(short_command(""), "");
}

}  // namespace
}  // namespace vramscope::support
