#include "support/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "support/memory_budget.h"

namespace vramscope::support {
namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest; 16 means a header of gzip

}  // namespace

std::string gzip(std::string_view data, int level) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, kGzipWindow, 9, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::string out;
  std::array<char, 64 * 1024> buffer;
  // zlib counts in 32 bits: larger input is passed in parts.
  std::size_t given = 0;
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    if (stream.avail_in == 0 && given < data.size()) {
      const std::size_t part = std::min<std::size_t>(data.size() - given, 1U << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data() + given));
      stream.avail_in = static_cast<uInt>(part);
      given += part;
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    code = deflate(&stream, given == data.size() ? Z_FINISH : Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) break;
    out.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

Result<std::string> gunzip(std::string_view packed, std::uint64_t most) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return fail("cannot unpack gzip: out of memory");
  std::string out;
  std::array<char, 64 * 1024> buffer;
  std::size_t given = 0;
  int code = Z_OK;
  while (code != Z_STREAM_END && out.size() <= most) {
    if (stream.avail_in == 0 && given < packed.size()) {
      const std::size_t part = std::min<std::size_t>(packed.size() - given, 1U << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + given));
      stream.avail_in = static_cast<uInt>(part);
      given += part;
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    code = inflate(&stream, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END) break;
    out.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (out.size() > most) return fail(fmt::format("unpacks to {}; if you trust it, unpack it with gunzip first", more_than(most)));
  if (code != Z_STREAM_END) return fail("damaged gzip data");
  return out;
}

std::string base64(std::string_view data) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((data.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < data.size(); i += 3) {
    const auto byte = [&](std::size_t at) {
      return at < data.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(data[at])) : 0U;
    };
    const std::uint32_t bits = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    out.push_back(kDigits[bits >> 18]);
    out.push_back(kDigits[(bits >> 12) & 63]);
    out.push_back(i + 1 < data.size() ? kDigits[(bits >> 6) & 63] : '=');
    out.push_back(i + 2 < data.size() ? kDigits[bits & 63] : '=');
  }
  return out;
}

}  // namespace vramscope::support
