// Which of several processes is not like the others: one rule for the text of the verbs and for the page.
#include "analyze/verdict/ranks.h"

#include <gtest/gtest.h>

namespace vramscope {
namespace {

using namespace analyze;
constexpr Bytes kMiB = 1u << 20;

TEST(Ranks, TextAndPageAgreeOnWhoStandsOut) {
  for (const Bytes peak : {100 * kMiB, 101 * kMiB, 103 * kMiB, 120 * kMiB, 90 * kMiB}) {
    std::vector<RankPeak> ranks;
    std::vector<Process> processes;
    for (std::int64_t rank = 0; rank < 5; ++rank) {
      const Bytes own = rank == 3 ? peak : 100 * kMiB;
      ranks.push_back({.rank = rank, .peak_bytes = own});
      processes.push_back({.name = "a file", .rank = rank, .peak = own});
    }
    const auto of_text = compare_ranks(ranks);
    const Processes of_page = compare_processes(processes);
    ASSERT_TRUE(of_text);
    EXPECT_EQ(of_page.sentence.contains("rank 3 stands out"), of_text->stands_out == 3) << of_page.sentence;
    EXPECT_EQ(of_text->stands_out.has_value(), peak != 100 * kMiB && peak != 101 * kMiB);
    EXPECT_EQ(of_page.order.front(), peak == 100 * kMiB ? 0u : 3u);
  }
}

TEST(Ranks, TroubleComesFirst) {
  const std::vector<Process> all = {
      {.name = "run/a.vram", .peak = 100 * kMiB},
      {.name = "run/b.vram", .readable = false},
      {.name = "run/c.vram", .peak = 300 * kMiB},
      {.name = "run/d.vram", .peak = 100 * kMiB, .trouble = "grows"},
  };
  const Processes compared = compare_processes(all);
  EXPECT_EQ(compared.order, (std::vector<std::uint64_t>{3, 1, 2, 0}));
  EXPECT_EQ(compared.sentence, "4 processes were recorded; 2 of them need attention: memory grows in run/d.vram.");
  EXPECT_EQ(compare_processes(std::span(all).subspan(3)).sentence,
            "1 process was recorded; run/d.vram needs attention: memory grows.");
  EXPECT_EQ(compare_processes(std::span(all).subspan(1, 1)).sentence,
            "1 process was recorded; run/b.vram needs attention: it cannot be read.");
  EXPECT_EQ(compare_processes(std::span(all).first(1)).sentence,
            "1 process was recorded; none stands out, a typical one peaks at 100.0 MiB.");
  EXPECT_EQ(compare_processes({}).sentence, "");
}

}  // namespace
}  // namespace vramscope
