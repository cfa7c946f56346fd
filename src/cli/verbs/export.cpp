#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "cli/picture.h"
#include "cli/run_folder.h"
#include "cli/show/answer.h"
#include "cli/show/terminal.h"
#include "cli/verb.h"
#include "exporters/format.h"
#include "exporters/tables.h"
#include "support/file.h"
#include "support/fresh_file.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

// Standard output, for -o -.
class StandardOutput final : public support::Sink {
 public:
  Status append(support::ByteSpan bytes) override {
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    size_ += text.size();
    // A terminal obeys what a name in a trace tells it to do.
    const std::string harmless = terminal_ ? printable_lines(text) : std::string();
    if (terminal_) text = harmless;
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
      return support::output_error(errno);
    return {};
  }
  std::uint64_t size() const override { return size_; }

 private:
  const bool terminal_ = isatty(STDOUT_FILENO) != 0;
  std::uint64_t size_ = 0;
};

// Names are written again in each row: a file of a few kilobytes could fill the disk, or the memory of who reads the output.
// Recordings stay far below the limit: each event takes at least 0.1 bytes of the file, and a few hundred bytes of a table.
class Limited final : public support::Sink {
 public:
  Limited(support::Sink& sink, const std::filesystem::path& trace) : sink_(sink) {
    if (const auto file = support::ReadFile::open(trace)) most_ += kMostPerByte * file->stored();
  }

  Status append(support::ByteSpan bytes) override {
    if (sink_.size() + bytes.size() > most_)
      return fail(
          fmt::format("the output would be larger than {}; the trace is damaged or forged: it repeats very long names very often",
                      support::format_size(most_)));
    return sink_.append(bytes);
  }
  std::uint64_t size() const override { return sink_.size(); }

 private:
  static constexpr std::uint64_t kAlways = std::uint64_t{256} << 20, kMostPerByte = 4096;

  support::Sink& sink_;
  std::uint64_t most_ = kAlways;
};

// Those of the library, and the one that needs another program.
std::vector<const exporters::Format*> all_formats() {
  std::vector<const exporters::Format*> out(exporters::formats().begin(), exporters::formats().end());
  out.push_back(&kPng);
  std::ranges::sort(out, {}, &exporters::Format::name);
  return out;
}

std::vector<std::string> format_names() {
  std::vector<std::string> out;
  for (const exporters::Format* format : all_formats()) out.emplace_back(format->name);
  return out;
}

std::string table_help() {
  std::string names;
  for (const exporters::Table& table : exporters::tables()) names += fmt::format("{}{}", names.empty() ? "" : ", ", table.name);
  return "table, for arrow, csv, jsonl and parquet: " + names + " (default: blocks)";
}

class ExportVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operand("trace", trace_, kOneTraceHelp);
    arguments.choice("--to", format_, format_names(), "format of the output");
    arguments.text("-o,--output", output_, "output file, which must not exist; - is the standard output", "FILE");
    arguments.text("--at", at_, kInstantHelp, "INSTANT");
    arguments.text("--place", options_.place, kPlaceHelp, "PLACE");
    arguments.text("--table", table_, table_help(), "TABLE");
    arguments.flag("--full", full_, "write every event, for chrome (default: a limited number of points)");
  }

  Result<int> run() override {
    const auto known = all_formats();
    if (format_.empty()) return fail(fmt::format("--to is missing: expected one of {}", fmt::join(format_names(), ", ")));
    const exporters::Format& format = **std::ranges::find(known, format_, &exporters::Format::name);
    if (output_.empty()) return fail(fmt::format("-o is missing; name the output file, such as -o memory{}", format.extension));
    if (format.name == "tensorboard" && output_ != "-" && output_.find("tfevents") == std::string::npos)
      return fail(
          fmt::format("{}: TensorBoard reads only files with \"tfevents\" in their names; choose another output file", output_));
    if (format.binary && output_ == "-" && isatty(STDOUT_FILENO) != 0)
      return fail(fmt::format("{} is not text; redirect the output, or name a file with -o", format.name));
    if (Status status = options_have_effect(format); !status) return std::unexpected(status.error());
    const auto file = only_trace_of(trace_);
    if (!file) return std::unexpected(file.error());
    auto engine = analyze::Engine::open(*file);
    if (!engine) return std::unexpected(engine.error());
    const auto place = options_.place_of(*engine);
    if (!place) return std::unexpected(place.error());
    const exporters::Request request{
        .engine = *engine, .place = *place, .at = at_.empty() ? "peak" : at_, .table = table_, .full = full_};
    auto written = output_ == "-" ? write_standard(format, request, *file) : write_file(format, request, *file);
    if (!written) return std::unexpected(written.error());
    say_damage(*file, engine->overview().damage);
    say_missing(*file, engine->overview().missing);
    say_source(engine->overview());
    return 0;
  }

 private:
  Status options_have_effect(const exporters::Format& format) const {
    unsigned takes = format.takes;
    std::string name = fmt::format("--to {}", format.name);
    if ((takes & exporters::kTakesTable) != 0) {
      const auto table = exporters::table_named(table_);
      if (!table) return std::unexpected(table.error());
      takes |= (*table)->takes;
      name += fmt::format(" --table {}", (*table)->name);
    }
    const std::tuple<const char*, bool, unsigned> options[] = {{"--at", !at_.empty(), exporters::kTakesInstant},
                                                               {"--place", !options_.place.empty(), exporters::kTakesPlace},
                                                               {"--table", !table_.empty(), exporters::kTakesTable},
                                                               {"--full", full_, exporters::kTakesEveryEvent}};
    for (const auto& [option, given, needs] : options)
      if (given && (takes & needs) == 0) return fail(fmt::format("{} has no effect with {}; leave it out", option, name));
    return {};
  }

  static Status write_to(support::Sink& sink, const exporters::Format& format, const exporters::Request& request,
                         const std::filesystem::path& trace) {
    Limited limited(sink, trace);
    exporters::Output out(limited);
    if (Status status = format.write(request, out); !status) return status;
    return out.finish();
  }

  static Status write_standard(const exporters::Format& format, const exporters::Request& request,
                               const std::filesystem::path& trace) {
    StandardOutput sink;
    return write_to(sink, format, request, trace);
  }

  Status write_file(const exporters::Format& format, const exporters::Request& request,
                    const std::filesystem::path& trace) const {
    auto fresh = support::FreshFile::create(output_);
    if (!fresh) return std::unexpected(fresh.error());
    if (Status status = write_to(*fresh, format, request, trace); !status) return status;
    const std::uint64_t bytes = fresh->size();
    if (Status status = fresh->keep(); !status) return status;
    fmt::print(stderr, "vramscope: {} ({}) opens in {}\n", printable(output_), support::format_size(bytes), format.opens_in);
    return {};
  }

  std::string trace_, format_, output_, at_, table_;
  AnswerOptions options_;
  bool full_ = false;
};

const Register kVerb{{.name = "export",
                      .group = Group::inspect,
                      .help = "write a trace in the format of another tool",
                      .examples = "  vramscope export run.vram --to perfetto -o run.pftrace\n"
                                  "  vramscope export run.vram --to torch-snapshot -o run.pickle\n"
                                  "  vramscope export run.vram --to csv --table steps -o steps.csv\n",
                      .make = make<ExportVerb>}};

}  // namespace

}  // namespace vramscope::cli
