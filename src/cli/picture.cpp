#include "cli/picture.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/child.h"
#include "cli/python_script.h"
#include "cli/run/launch.h"
#include "support/owned_folder.h"

namespace vramscope::cli {

namespace {

using Command = std::vector<std::string>;

// The package's own command line; for python_script().
constexpr const char* kCairoSvg = R"(
import runpy
runpy.run_module("cairosvg", run_name="__main__", alter_sys=True)
)";

// Pictures are twice as fine as the units of the SVG, for screens that have such pixels. Tried in this order.
std::vector<Command> converters(const std::string& svg, const std::string& png) {
  const char* python = std::getenv("VRAMSCOPE_PYTHON");
  return {{"rsvg-convert", "--zoom=2", "--output", png, svg},
          {python != nullptr ? python : "python3", "-c", python_script(kCairoSvg), "--scale", "2", "--output", png, svg}};
}

class Text final : public support::Sink {
 public:
  Status append(support::ByteSpan bytes) override {
    text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
  std::uint64_t size() const override { return text_.size(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Result<std::string> png_of(const std::string& svg) {
  const auto folder = support::OwnedFolder::create_temporary("vramscope-picture-");
  if (!folder) return std::unexpected(folder.error());
  const std::filesystem::path source = folder->path() / "chart.svg", drawn = folder->path() / "chart.png";
  std::ofstream(source, std::ios::binary) << svg;
  std::string png;
  for (const Command& command : converters(source.string(), drawn.string())) {
    const auto file = find_command(command[0]);
    if (!file || !png.empty()) continue;
    const auto code = run_and_wait(*file, command, Streams::none);
    if (code && *code == 0) png = contents(drawn);
  }
  folder->remove([](std::string_view name) { return name == "chart.svg" || name == "chart.png"; });
  if (!png.starts_with("\x89PNG"))
    return fail(
        "png: no working program that draws SVG was found; install rsvg-convert (librsvg2-bin) or CairoSVG, or use --to svg");
  return png;
}

Status write(const exporters::Request& request, exporters::Output& out) {
  const auto formats = exporters::formats();
  const exporters::Format& svg = **std::ranges::find(formats, "svg", &exporters::Format::name);
  Text text;
  exporters::Output chart(text);
  if (Status status = svg.write(request, chart); !status) return status;
  if (Status status = chart.finish(); !status) return status;
  const auto png = png_of(text.text());
  if (!png) return std::unexpected(png.error());
  out.write(*png);
  return {};
}

}  // namespace

const exporters::Format kPng{.name = "png",
                             .extension = ".png",
                             .opens_in = "any image viewer",
                             .binary = true,
                             .takes = exporters::kTakesPlace,
                             .write = write};

}  // namespace vramscope::cli
