// Replays events that it reads from stdin through a model of an allocator, and prints what the model did as JSON.
//
//   model torch|bfc|stream_pool|uncached      settings TEXT      version TEXT      total BYTES      capacity BYTES      limit
//   BYTES growth 0|1      collection 0|1 device take|return ADDRESS BYTES          a call of the recording, in order alloc BLOCK
//   BYTES STREAM POOL      free BLOCK      hold BLOCK      empty      synchronize      set_limit BYTES begin_capture end_capture
//   retire POOL
//
// Numbers of blocks and streams may be any; streams are ordered by them.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "whatif/replay/replay.h"

using namespace vramscope::whatif;

namespace {

struct Input {
  Scenario scenario;
  std::string settings, version = "2.11";
  Bytes limit = 0;
  std::vector<DeviceCall> calls;
  Events events;
  std::vector<std::uint64_t> streams;  // of each event
};

const std::map<std::string, Scenario::Kind> kModels{{"torch", Scenario::Kind::torch},
                                                    {"bfc", Scenario::Kind::bfc},
                                                    {"stream_pool", Scenario::Kind::stream_pool},
                                                    {"uncached", Scenario::Kind::uncached}};
const std::map<std::string, What> kPlain{{"empty", What::empty_cache},
                                         {"synchronize", What::synchronize},
                                         {"begin_capture", What::begin_capture},
                                         {"end_capture", What::end_capture}};

bool read_option(const std::string& word, std::istringstream& line, Input& input) {
  std::string text;
  if (word == "model" && line >> text && kModels.contains(text)) {
    input.scenario.kind = kModels.at(text);
  } else if (word == "settings") {
    line >> input.settings;
  } else if (word == "version") {
    line >> input.version;
  } else if (word == "total") {
    line >> input.scenario.device.total;
  } else if (word == "capacity") {
    line >> input.scenario.device.capacity;
  } else if (word == "limit") {
    line >> input.limit;
  } else if (word == "growth") {
    line >> input.scenario.bfc.growth;
  } else if (word == "collection") {
    line >> input.scenario.bfc.collection;
  } else if (DeviceCall call; word == "device" && line >> text >> call.address >> call.bytes) {
    call.returned = text == "return";
    input.calls.push_back(call);
  } else {
    return false;
  }
  return true;
}

bool read_event(const std::string& word, std::istringstream& line, std::map<std::string, std::uint32_t>& blocks, Input& input) {
  Event event;
  std::string block;
  std::uint64_t stream = 0;
  unsigned pool = 0;
  if (word == "alloc" && line >> block >> event.bytes) {
    line >> stream >> pool;
    event.pool = static_cast<std::uint8_t>(pool);
    event.block = static_cast<std::uint32_t>(blocks.size());
    if (!blocks.emplace(block, event.block).second) return false;
  } else if ((word == "free" || word == "hold") && line >> block && blocks.contains(block)) {
    event.what = word == "free" ? What::free : What::hold;
    event.block = blocks.at(block);
  } else if (word == "set_limit" && line >> event.bytes) {
    event.what = What::limit;
  } else if (word == "retire" && line >> pool) {
    event.what = What::retire_pool;
    event.pool = static_cast<std::uint8_t>(pool);
  } else if (kPlain.contains(word)) {
    event.what = kPlain.at(word);
  } else {
    return false;
  }
  input.events.push_back(event);
  input.streams.push_back(stream);
  return true;
}

// Streams get numbers in the order of their handles.
void number_streams(Input& input) {
  const std::set<std::uint64_t> handles(input.streams.begin(), input.streams.end());
  std::map<std::uint64_t, std::uint16_t> number;
  for (const std::uint64_t handle : handles) number.emplace(handle, static_cast<std::uint16_t>(number.size()));
  for (std::size_t i = 0; i < input.events.size(); ++i) input.events[i].stream = number[input.streams[i]];
}

void print(const Allocator& allocator, const Outcome& outcome, const std::vector<std::uint64_t>& addresses) {
  const Counters& c = outcome.counters;
  fmt::print(
      "{{\"reserved\": {}, \"reserved_peak\": {}, \"allocated\": {}, \"allocated_peak\": {}, \"flushes\": {}, \"failures\": {}, ",
      c.reserved, c.reserved_peak, c.allocated, c.allocated_peak, c.flushes, c.failures);
  const auto differs = allocator.device().differs_at();
  fmt::print("\"differs_at\": {}, \"calls\": [", differs ? std::to_string(*differs) : "null");
  const char* comma = "";
  for (const DeviceCall& call : allocator.device().calls()) {
    fmt::print("{}[\"{}\", {}, {}]", comma, call.returned ? "return" : "take", call.address, call.bytes);
    comma = ", ";
  }
  fmt::print("], \"addresses\": [");
  comma = "";
  for (const std::uint64_t address : addresses) {
    fmt::print("{}{}", comma, address);
    comma = ", ";
  }
  fmt::print("]}}\n");
}

}  // namespace

int main() {
  Input input;
  std::map<std::string, std::uint32_t> blocks;
  std::string text, word;
  for (std::size_t number = 1; std::getline(std::cin, text); ++number) {
    std::istringstream line(text);
    if (!(line >> word)) continue;
    if (read_option(word, line, input) || read_event(word, line, blocks, input)) continue;
    fmt::print(stderr, "replay_events: line {}: invalid: \"{}\"\n", number, text);
    return 2;
  }
  number_streams(input);
  const auto settings = TorchSettings::parse(input.settings, TorchSettings::version_of(input.version));
  if (!settings) {
    fmt::print(stderr, "replay_events: {}\n", settings.error().message);
    return 2;
  }
  input.scenario.torch = *settings;
  input.scenario.device.keep_calls = true;
  input.scenario.device.recorded = input.calls;
  if (input.limit != 0) input.scenario.set_limit(input.limit);
  const auto allocator = make_allocator(input.scenario);
  std::vector<std::uint64_t> addresses;  // 0 = failed
  Outcome outcome;
  for (const Event& event : input.events) {
    const bool done = replay({&event, 1}, *allocator).completed();
    if (event.what == What::alloc) addresses.push_back(done ? allocator->address_of(event.block) : 0);
  }
  outcome.counters = allocator->counters();
  print(*allocator, outcome, addresses);
  return 0;
}
