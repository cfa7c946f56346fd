#include "analyze/attribute/jax/op_names.h"

#include <algorithm>
#include <span>

namespace vramscope::analyze::jax {
namespace {

// Transformations that keep the scope inside them, and words that stand for control flow or a function instead of a scope.
constexpr std::string_view kTransformations[] = {"jvp", "transpose", "vmap", "linearize", "pmap", "shard_map"};
constexpr std::string_view kNoScopes[] = {
    "jit",    "pjit", "checkpoint",  "remat",     "rematted_computation", "while",           "body", "cond",
    "branch", "scan", "closed_call", "core_call", "custom_jvp_call",      "custom_vjp_call", "main"};

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// Splits off the part up to the next "/" outside of parentheses.
std::string_view next_part(std::string_view& rest) {
  int depth = 0;
  std::size_t end = 0;
  for (; end < rest.size() && (depth > 0 || rest[end] != '/'); ++end) depth += rest[end] == '(' ? 1 : rest[end] == ')' ? -1 : 0;
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

// "transpose(jvp(encoder))" -> "encoder"; empty if it is not a scope.
std::string_view scope_in(std::string_view part) {
  for (;;) {
    const std::size_t open = part.find('(');
    if (open == std::string_view::npos || !part.ends_with(')')) return is_one_of(part, kNoScopes) ? std::string_view() : part;
    if (!is_one_of(part.substr(0, open), kTransformations)) return {};
    part = part.substr(open + 1, part.size() - open - 2);
  }
}

bool is_op(std::string_view name) { return name.starts_with("jit("); }

// "params['params']['encoder']['dense_0']['kernel']" -> "encoder/dense_0"
std::string layer_of_argument(std::string_view path) {
  std::string layer, last;
  for (std::size_t quote = path.find('\''); quote != std::string_view::npos; quote = path.find('\'', quote + 1)) {
    const std::size_t end = path.find_first_of("\\'", quote + 1);
    const std::string_view part = path.substr(quote + 1, std::min(end, path.size()) - quote - 1);
    if (!last.empty()) layer.append(layer.empty() ? "" : "/").append(last);
    last = part == "params" ? std::string_view() : part;
    quote = std::min(path.find('\'', quote + 1), path.size());
  }
  return layer;
}

}  // namespace

bool is_name(std::string_view name) {
  return is_op(name) || name.find("['") != std::string_view::npos || name.find("[\\'") != std::string_view::npos;
}

OpMeaning meaning_of_op(std::string_view op) {
  OpMeaning out;
  if (!is_op(op)) {
    out.layer = layer_of_argument(op);
    return out;
  }
  if (op.find("transpose(") != std::string_view::npos)
    out.stage = Stage::backward;
  else if (op.find("jvp(") != std::string_view::npos)
    out.stage = Stage::forward;
  for (std::string_view rest = op; !rest.empty();) {
    const std::string_view part = next_part(rest);
    if (rest.empty()) break;  // the op itself
    const std::string_view scope = scope_in(part);
    if (!scope.empty()) out.layer.append(out.layer.empty() ? "" : "/").append(scope);
  }
  return out;
}

}  // namespace vramscope::analyze::jax
