// What the parts of a frame have in common: colors, figures, the curve of a process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/top/canvas.h"
#include "cli/top/model.h"

namespace vramscope::cli::top {

inline constexpr std::uint64_t kMiB = 1024 * 1024;

inline constexpr Style kText{.colour = 0xd5dae2};
inline constexpr Style kStrong{.colour = 0xffffff, .bold = true};
inline constexpr Style kSoft{.colour = 0x8791a0};
inline constexpr Style kSignal{.colour = 0xff8a4c, .bold = true};
inline constexpr std::int32_t kLiveColour = 0x6dbbf0;

// Figures in MiB, "–" for what is not known.
std::string mib(Bytes bytes);
std::string mib(const std::optional<Bytes>& bytes);

// ASCII letters only: what is compared this way is commands and names of columns.
std::string lower(std::string_view text);

// The highest live bytes in each of `columns` equal stretches of the last kHistoryUs, as a share of `top`.
std::vector<double> curve(const Process& process, std::uint64_t now_us, int columns, Bytes top);

}  // namespace vramscope::cli::top
