// How functions outside the user's process fail: by value, with one actionable sentence.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace vramscope {

// Where it failed, what went wrong and what to do, in one line without a final newline.
struct Error {
  std::string message;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

inline std::unexpected<Error> fail(std::string message) { return std::unexpected(Error{std::move(message)}); }

}  // namespace vramscope
