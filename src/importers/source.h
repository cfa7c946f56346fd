// The bytes of a profile from front to back: in memory, or read from a file piece by piece, so that a large one is never resident
// as a whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "support/file.h"

namespace vramscope::importers {

class Source {
 public:
  // What is read must outlive the object.
  explicit Source(std::string_view bytes) : left_(bytes) {}
  explicit Source(const support::ReadFile& file) : file_(&file), buffer_(kPiece) {}

  static constexpr std::size_t kMost = 4096;  // of one take()

  // The next bytes, valid until the next call. Fewer than `count` at the end.
  std::string_view take(std::size_t count) {
    if (left_.size() < count) refill();
    const std::string_view out = left_.substr(0, count);
    left_.remove_prefix(out.size());
    position_ += out.size();
    return out;
  }
  // Passes the next bytes to f in pieces. False: there are fewer.
  template <typename F>
  bool each_piece(std::uint64_t count, F&& f) {
    while (count > 0) {
      if (left_.empty()) refill();
      const std::string_view piece = left_.substr(0, count);
      if (piece.empty()) return false;
      f(piece);
      left_.remove_prefix(piece.size());
      position_ += piece.size();
      count -= piece.size();
    }
    return true;
  }
  // Of the byte that comes next.
  std::uint64_t position() const { return position_; }

 private:
  static constexpr std::size_t kPiece = 1 << 20;

  // Moves what is left to the front and reads on. A file that has become shorter ends there.
  void refill() {
    if (file_ == nullptr) return;
    std::ranges::copy(left_, buffer_.begin());
    const std::size_t kept = left_.size();
    const auto more = std::min<std::uint64_t>(kPiece - kept, file_->size() - read_);
    const std::span<std::uint8_t> into(reinterpret_cast<std::uint8_t*>(buffer_.data()) + kept, more);
    const bool good = more > 0 && file_->read(read_, into).has_value();
    left_ = {buffer_.data(), kept + (good ? more : 0)};
    if (good) read_ += more;
  }

  const support::ReadFile* file_ = nullptr;
  std::vector<char> buffer_;
  std::string_view left_;
  std::uint64_t position_ = 0, read_ = 0;
};

}  // namespace vramscope::importers
