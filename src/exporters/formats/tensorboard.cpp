// A TensorBoard event file: memory and time of each step as scalars, with the number of the step as the x axis. The same tags as
// vramscope.tensorboard.write_trace() in Python.
#include <fmt/format.h>

#include <array>
#include <set>

#include "exporters/format.h"
#include "exporters/wire.h"

namespace vramscope::exporters::tensorboard {

extern const Format kFormat;

namespace {

constexpr double kMiB = 1 << 20;

// CRC32C, as TFRecord wants it.
std::uint32_t crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> out{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? value >> 1 ^ 0x82f63b78u : value >> 1;
      out[i] = value;
    }
    return out;
  }();
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(byte)) & 255];
  return ~crc;
}

void write_record(Output& out, const Message& event) {
  const auto masked = [](std::string_view bytes) {
    const std::uint32_t crc = crc32c(bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
  };
  std::string length;
  append_little_endian(length, static_cast<std::uint64_t>(event.bytes().size()));
  std::string record = length;
  append_little_endian(record, masked(length));
  record += event.bytes();
  append_little_endian(record, masked(event.bytes()));
  out.write(record);
}

// Fields of tensorflow.Event and Summary.Value.
class Scalars {
 public:
  explicit Scalars(Output& out) : out_(out) {}

  void begin(double wall_time) { write_record(out_, Message().real(1, wall_time).text(3, "brain.Event:2")); }
  void add(const std::string& tag, double value) {
    constexpr std::uint64_t kFloat = 1, kScalarClass = 1;
    Message point = Message().text(1, tag);
    if (known_.insert(tag).second) point.message(9, Message().message(1, Message().text(1, "scalars")).number(4, kScalarClass));
    std::string content;
    append_little_endian(content, static_cast<float>(value));
    // TensorBoard's data server drops tensors of doubles.
    point.message(8, Message().number(1, kFloat).message(2, Message()).content(5, content));
    summary_.message(1, point);
  }
  void end_step(double wall_time, std::int64_t step) {
    if (!summary_.empty()) write_record(out_, Message().real(1, wall_time).integer(2, step).message(5, summary_));
    summary_.clear();
  }

 private:
  Output& out_;
  Message summary_;
  std::set<std::string> known_;
};

struct Figure {
  std::string_view name;
  std::uint64_t analyze::Step::* bytes;
  bool may_be_absent;  // 0: no such phase was seen
};
constexpr Figure kFigures[] = {{"peak", &analyze::Step::peak, false},
                               {"at its start", &analyze::Step::before, false},
                               {"at its end", &analyze::Step::after, false},
                               {"allocated", &analyze::Step::allocated, false},
                               {"forward peak", &analyze::Step::forward_peak, true},
                               {"backward peak", &analyze::Step::backward_peak, true},
                               {"optimizer peak", &analyze::Step::optimizer_peak, true}};

Status write(const Request& request, Output& out) {
  const analyze::Overview overview = request.engine.overview();
  const double began = static_cast<double>(overview.start_realtime_us) / 1e6;
  Scalars scalars(out);
  scalars.begin(began);
  bool any = false;
  std::set<std::pair<std::string, std::int64_t>> timed;
  for (std::size_t i = 0; i < overview.places.size(); ++i) {
    if (overview.places[i].driver) continue;
    for (const analyze::Step& step : request.engine.steps(static_cast<int>(i)).steps) {
      const std::string prefix = fmt::format("memory/{}/{}/", step.kind, overview.places[i].name);
      for (const Figure& figure : kFigures)
        if (const std::uint64_t bytes = step.*figure.bytes; bytes > 0 || !figure.may_be_absent)
          scalars.add(fmt::format("{}{} (MiB)", prefix, figure.name), static_cast<double>(bytes) / kMiB);
      scalars.add(prefix + "growth (MiB)", static_cast<double>(step.growth) / kMiB);
      if (timed.emplace(step.kind, step.number).second)  // the same in every place
        scalars.add(fmt::format("time/{}/step (ms)", step.kind), static_cast<double>(step.end_us - step.begin_us) / 1000);
      scalars.end_step(began + static_cast<double>(step.end_us) / 1e6, step.number);
      any = true;
    }
  }
  if (!any) return fail(fmt::format("{}: {}", overview.path, request.engine.steps().sentence));
  return {};
}

}  // namespace

const Format kFormat{.name = "tensorboard", .extension = ".tfevents", .opens_in = "TensorBoard", .binary = true, .write = write};

}  // namespace vramscope::exporters::tensorboard
