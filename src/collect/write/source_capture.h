// Stores the text around allocating lines in the trace, so that viewers do not have to open the files that a trace names.
//
// The recorded program chose the names. Therefore only regular files with Python source are read that belong to the recorded
// user or are readable by everyone, and only a small part of them: lines around each location, and a limited amount of text per
// trace.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "support/plain_file.h"
#include "trace/writer.h"

namespace vramscope::collect {

class SourceCapture {
 public:
  struct Limits {
    std::uint64_t context = 12;                      // lines before and after one of the user's
    std::uint64_t installed_context = 3;             // and of an installed package's
    std::uint64_t text_bytes = 1 << 20;              // per trace
    std::uint64_t installed_text_bytes = 256 << 10;  // of packages, to leave room for the user's own files
    std::uint64_t file_bytes = support::kLargestSourceFile;
    std::size_t line_bytes = 500;  // a longer line is truncated
    std::size_t files = 4096;
    std::size_t files_per_pass = 64;  // events wait meanwhile
  };

  // `owner`: the user of the recorded process. `started_us`: since 1970.
  SourceCapture(uid_t owner, std::uint64_t started_us) : owner_(owner), started_us_(started_us) {}
  SourceCapture(uid_t owner, std::uint64_t started_us, const Limits& limits)
      : limits_(limits), owner_(owner), started_us_(started_us) {}

  // A line that allocates, or that calls one that does.
  void see(std::string_view file, std::uint64_t line);
  // Reads the locations seen since the last call and writes their text to the trace. `all`: without a limit on the work.
  void write_to(trace::Writer& writer, bool all);

 private:
  struct File {
    std::set<std::uint64_t> seen;
    std::set<std::uint64_t> wanted;  // of these, not read yet
    std::set<std::uint64_t> kept;
    trace::SourceState state = trace::SourceState::kept;
    std::uint64_t written_us = 0;
    bool written = false;  // its state is in the trace
  };

  void write(const std::string& path, File& file, trace::Writer& writer);
  trace::SourceState judge(const support::PlainResult& found, std::string_view path) const;
  bool keep(const std::string& path, File& file, std::uint64_t number, std::string_view text, trace::Writer& writer);

  Limits limits_;
  uid_t owner_;
  std::uint64_t started_us_;
  std::uint64_t text_bytes_ = 0;
  std::uint64_t installed_text_bytes_ = 0;
  std::map<std::string, File, std::less<>> files_;
  std::set<std::string> pending_;
};

}  // namespace vramscope::collect
