#include "serve/params.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace vramscope::serve {

namespace {

Result<std::string_view> find(const Params& params, std::string_view name) {
  const auto at = params.find(name);
  if (at == params.end()) return fail(fmt::format("missing parameter \"{}\"", name));
  if (at->second.size() > kLongestParameter)
    return fail(fmt::format("parameter \"{}\" is longer than {} bytes", name, kLongestParameter));
  return std::string_view(at->second);
}

template <typename Number>
Status read_number(const Params& params, std::string_view name, Number& out) {
  const auto text = find(params, name);
  if (!text) return std::unexpected(text.error());
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), out);
  if (error != std::errc{} || end != text->data() + text->size())
    return fail(fmt::format("parameter \"{}\" must be a number", name));
  return {};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])));
      i += 2;
    } else {
      out.push_back(text[i] == '+' ? ' ' : text[i]);
    }
  }
  return out;
}

}  // namespace

Status read_param(const Params& params, std::string_view name, std::string& out) {
  if (!params.contains(name)) return {};
  const auto text = find(params, name);
  if (!text) return std::unexpected(text.error());
  out = *text;
  return {};
}

Status read_param(const Params& params, std::string_view name, std::uint64_t& out) { return read_number(params, name, out); }

Status read_param(const Params& params, std::string_view name, double& out) {
  if (auto status = read_number(params, name, out); !status) return status;
  if (!std::isfinite(out)) return fail(fmt::format("parameter \"{}\" must be a number", name));
  return {};
}

Params parse_query(std::string_view query) {
  Params out;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view part = query.substr(0, end);
    const std::size_t equals = std::min(part.find('='), part.size());
    if (!part.empty()) out[unescape(part.substr(0, equals))] = equals < part.size() ? unescape(part.substr(equals + 1)) : "";
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return out;
}

}  // namespace vramscope::serve
