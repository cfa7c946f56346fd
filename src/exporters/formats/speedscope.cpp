// speedscope: one profile of what was live at the instant, and one of all that was allocated.
#include "exporters/format.h"
#include "exporters/stack_sums.h"
#include "support/json_writer.h"

namespace vramscope::exporters::speedscope {

extern const Format kFormat;

namespace {

void profile(support::JsonWriter& json, const StackSums& sums, const std::string& name, std::uint64_t StackSum::* bytes) {
  std::uint64_t total = 0;
  for (const StackSum& sum : sums.sums) total += sum.*bytes;
  json.begin_object().member("type", "sampled").member("name", name).member("unit", "bytes");
  json.member("startValue", 0).member("endValue", total).key("samples").begin_array();
  for (const StackSum& sum : sums.sums) {
    if (sum.*bytes == 0) continue;
    json.begin_array();
    for (auto frame = sum.frames.rbegin(); frame != sum.frames.rend(); ++frame) json.value(*frame);
    json.end_array();
  }
  json.end_array().key("weights").begin_array();
  for (const StackSum& sum : sums.sums)
    if (sum.*bytes > 0) json.value(sum.*bytes);
  json.end_array().end_object();
}

Status write(const Request& request, Output& out) {
  analyze::BlockRows rows(request.engine);
  const auto sums = stack_sums(request, rows);
  if (!sums) return std::unexpected(sums.error());
  support::JsonWriter json(false);
  json.begin_object().member("$schema", "https://www.speedscope.app/file-format-schema.json");
  json.member("exporter", "vramscope " VRAMSCOPE_VERSION).member("name", request.engine.overview().program);
  json.key("shared").begin_object().key("frames").begin_array();
  for (const StackFrame& frame : sums->frames) {
    json.begin_object().member("name", frame.function);
    if (!frame.file.empty()) json.member("file", frame.file);
    if (frame.line != 0) json.member("line", frame.line);
    json.end_object();
  }
  json.end_array().end_object().key("profiles").begin_array();
  profile(json, *sums, sums->place + ": live at " + request.at, &StackSum::live_bytes);
  profile(json, *sums, sums->place + ": allocated in total", &StackSum::allocated_bytes);
  json.end_array().member("activeProfileIndex", 0).end_object();
  out.write(json.text());
  return {};
}

}  // namespace

const Format kFormat{.name = "speedscope",
                     .extension = ".speedscope.json",
                     .opens_in = "speedscope.app",
                     .takes = kTakesPlace | kTakesInstant,
                     .write = write};

}  // namespace vramscope::exporters::speedscope
