// Where an exporter writes: a buffer in front of a sink. The first error of the sink is kept, and nothing is written after it.
#pragma once

#include <string>
#include <string_view>

#include "support/file.h"
#include "support/result.h"

namespace vramscope::exporters {

class Output {
 public:
  explicit Output(support::Sink& sink) : sink_(sink) {}

  void write(std::string_view bytes) {
    buffer_.append(bytes);
    settle();
  }
  // To append to directly; call settle() now and then.
  std::string& buffer() { return buffer_; }
  void settle() {
    if (buffer_.size() >= kFull) flush();
  }
  // Bytes so far.
  std::uint64_t size() const { return written_ + buffer_.size(); }
  // False: the sink has failed, so that further work is useless.
  bool good() const { return status_.has_value(); }
  // Passes on what is left. Returns the first error.
  Status finish() {
    flush();
    return status_;
  }

 private:
  static constexpr std::size_t kFull = 1 << 20;

  void flush() {
    if (status_ && !buffer_.empty()) status_ = sink_.append(support::bytes_of(buffer_));
    written_ += buffer_.size();
    buffer_.clear();
  }

  support::Sink& sink_;
  std::string buffer_;
  std::uint64_t written_ = 0;
  Status status_;
};

}  // namespace vramscope::exporters
