// A chart of live bytes by category over time, for papers, wikis and pull requests.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "exporters/format.h"
#include "exporters/timeline.h"
#include "support/units.h"

namespace vramscope::exporters::svg {

extern const Format kFormat;

namespace {

constexpr double kWidth = 960, kHeight = 420, kLeft = 80, kTop = 40, kRight = 180, kBottom = 40;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr std::uint32_t kColumnsShown = 700;  // one per unit of the plot's width
// By Okabe and Ito: distinguishable with every kind of color vision. Repeated in lighter shades.
constexpr std::array<std::string_view, 12> kColors = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00",
                                                      "#f0e442", "#999999", "#66aad1", "#f0c566", "#66c5ab", "#e0afca"};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (static_cast<unsigned char>(c) >= ' ')
      out += c;
  }
  return out;
}

class Chart {
 public:
  Chart(const Timeline& timeline, const Timeline::Track& track)
      : track_(track), end_us_(std::max<std::uint64_t>(1, timeline.duration_us)) {
    for (const analyze::Bytes total : track.stacked.high) top_ = std::max(top_, static_cast<double>(total));
  }

  std::string text(std::string_view title) {
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<title>{2}</title>\n<rect width=\"{0}\" height=\"{1}\" "
        "fill=\"#ffffff\"/>\n"
        "<text x=\"{3}\" y=\"24\" font-size=\"14\">{2}</text>\n",
        kWidth, kHeight, escaped(title), kLeft);
    areas(out);
    axes(out);
    return out + "</svg>\n";
  }

 private:
  double x(std::uint64_t time_us) const {
    return kLeft + kPlotWidth * static_cast<double>(time_us) / static_cast<double>(end_us_);
  }
  double y(double bytes) const { return kTop + kPlotHeight * (1 - bytes / std::max(1.0, top_)); }

  void areas(std::string& out) const {
    const std::size_t columns = track_.stacked.time_us.size();
    std::vector<double> below(columns);
    std::size_t shown = 0;
    for (std::size_t group = 0; group < track_.stacked.groups.size(); ++group) {
      if (!track_.used[group]) continue;
      std::string upper, lower;
      std::vector<double> above = below;
      for (std::size_t i = 0; i < columns; ++i) {
        above[i] += static_cast<double>(track_.stacked.peak[group][i]);
        fmt::format_to(std::back_inserter(upper), "{:.1f},{:.2f} ", x(track_.stacked.time_us[i]), y(above[i]));
      }
      for (std::size_t i = columns; i-- > 0;)
        fmt::format_to(std::back_inserter(lower), "{:.1f},{:.2f} ", x(track_.stacked.time_us[i]), y(below[i]));
      const std::string_view color = kColors[shown % kColors.size()];
      const double legend_y = kTop + 18 * static_cast<double>(shown);
      out += fmt::format("<polygon points=\"{}{}\" fill=\"{}\"/>\n", upper, lower, color);
      out += fmt::format(
          "<rect x=\"{0}\" y=\"{1}\" width=\"12\" height=\"12\" fill=\"{2}\"/><text x=\"{3}\" y=\"{4}\">{5}</text>\n",
          kWidth - kRight + 16, legend_y, color, kWidth - kRight + 34, legend_y + 10, escaped(track_.stacked.groups[group]));
      below = std::move(above);
      ++shown;
    }
  }

  void axes(std::string& out) const {
    out += fmt::format("<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"#333333\"/>\n", kLeft, kTop, kTop + kPlotHeight,
                       kLeft + kPlotWidth);
    for (const double part : {0.0, 0.5, 1.0}) {
      const auto bytes = static_cast<std::uint64_t>(top_ * part);
      out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 6, y(top_ * part) + 4,
                         support::format_size(bytes));
      const auto time = static_cast<std::uint64_t>(static_cast<double>(end_us_) * part);
      out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x(time), kTop + kPlotHeight + 18,
                         support::format_duration(time));
    }
  }

  const Timeline::Track& track_;
  std::uint64_t end_us_;
  double top_ = 0;
};

Status write(const Request& request, Output& out) {
  const auto timeline = timeline_of(request, kColumnsShown);
  if (!timeline) return std::unexpected(timeline.error());
  const int place = request.place < 0 ? request.engine.main_place() : request.place;
  const std::string& name = request.engine.places()[static_cast<std::size_t>(place)].name;
  const auto track = std::ranges::find(timeline->places, name, [](const Timeline::Track& each) { return each.place.name; });
  if (track == timeline->places.end()) return fail(fmt::format("nothing was allocated on {}", name));
  out.write(
      Chart(*timeline, *track).text(fmt::format("{}: live memory, peak {}", name, support::format_size(track->place.peak))));
  return {};
}

}  // namespace

const Format kFormat{.name = "svg", .extension = ".svg", .opens_in = "any browser", .takes = kTakesPlace, .write = write};

}  // namespace vramscope::exporters::svg
