// How a format joins `vramscope export`: one file formats/<name>.cpp, found by the build, that defines
//
//   namespace vramscope::exporters::<name> { extern const Format kFormat; const Format kFormat{...}; }
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "analyze/api.h"
#include "exporters/output.h"
#include "support/result.h"

namespace vramscope::exporters {

struct Request {
  const analyze::Engine& engine;
  int place = -1;           // for formats that show one place; -1 = main
  std::string at = "peak";  // instant, for formats that show one
  std::string table;        // for formats that hold one table
  std::string run = {};     // what tables call the run; empty: the name of its folder or file
  bool full = false;        // every event instead of a budget of them
};

// Parts of a request that a format looks at.
enum Takes : unsigned { kTakesNothing = 0, kTakesPlace = 1, kTakesInstant = 2, kTakesTable = 4, kTakesEveryEvent = 8 };

struct Format {
  std::string_view name;       // as in --to
  std::string_view extension;  // of its files, with the dot
  std::string_view opens_in;   // the program that reads it, for the help
  bool binary = false;
  unsigned takes = kTakesNothing;
  Status (*write)(const Request& request, Output& out) = nullptr;
};

// All of them, by name.
std::span<const Format* const> formats();

}  // namespace vramscope::exporters
