#include "collect/write/manifest.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include "support/file.h"
#include "support/json_writer.h"

namespace vramscope::collect {

Status write_manifest(const CollectOptions& options, const Manifest& manifest) {
  support::JsonWriter json;
  json.begin_object().member("vramscope", VRAMSCOPE_VERSION).member("host", options.host);
  json.key("command").begin_array();
  if (!options.anonymize)
    for (const std::string& word : options.command) json.value(word);
  json.end_array().member("started_us", manifest.started_us);
  if (manifest.ended_us != 0) json.member("ended_us", manifest.ended_us);
  if (manifest.exit_code) json.member("exit_code", *manifest.exit_code);
  if (manifest.signal) json.member("signal", *manifest.signal);
  json.key("traces").begin_array();
  for (const TraceInfo& trace : manifest.traces) {
    json.begin_object().member("file", trace.path.filename().string()).member("pid", trace.pid);
    if (!options.anonymize) json.member("command", trace.command);
    json.member("events", trace.events).member("bytes", trace.bytes).member("complete", trace.complete);
    if (!trace.totals_check.empty()) json.member("totals_check", trace.totals_check);
    json.key("lost").begin_object();
    for (const auto& [kind, count] : trace.losses) json.member(trace::name_of(kind), count);
    json.end_object().end_object();
  }
  json.end_array().end_object();

  // Several runs may write into one folder at the same time, even from containers that share host name and process ids.
  const auto started = static_cast<std::time_t>(manifest.started_us / 1'000'000);
  const std::string name =
      fmt::format("{}-{}-{:%Y%m%dT%H%M%SZ}-{}.manifest.json", options.host, getpid(), fmt::gmtime(started), manifest.id);
  return support::replace_file(options.output / name, json.text() + "\n");
}

}  // namespace vramscope::collect
