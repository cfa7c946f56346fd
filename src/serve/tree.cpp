#include "serve/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "analyze/query/layer_fold.h"
#include "serve/answer_parts.h"

namespace vramscope::serve {

namespace {

constexpr std::size_t kMostLevels = 6;

struct Node {
  std::string name;
  double bytes = 0;
  std::uint64_t blocks = 0;
  std::map<std::string, double> categories;
  std::map<std::string, std::unique_ptr<Node>> children;
};

void add(Node& root, const analyze::Group& group, std::size_t category_level, std::size_t layer_level,
         const analyze::LayerFold& fold) {
  const std::string category = category_level < group.keys.size() ? group.keys[category_level] : "unknown";
  Node* at = &root;
  for (std::size_t level = 0; level < group.keys.size(); ++level) {
    const std::string key = level == layer_level ? fold(group.keys[level]) : group.keys[level];
    auto& child = at->children[key];
    if (!child) {
      child = std::make_unique<Node>();
      child->name = key;
    }
    child->bytes += static_cast<double>(group.bytes);
    child->blocks += group.count;
    child->categories[category] += static_cast<double>(group.bytes);
    at = child.get();
  }
}

std::string main_category(const Node& node) {
  const auto most = std::max_element(node.categories.begin(), node.categories.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == node.categories.end() ? "unknown" : most->first;
}

// Categories in the order of the timeline, the topmost first.
bool higher_in_stack(const Node* a, const Node* b) {
  const auto names = analyze::category_names();
  return std::find(names.begin(), names.end(), a->name) > std::find(names.begin(), names.end(), b->name);
}

void flatten(const Node& parent, std::int64_t parent_index, std::uint64_t depth, bool categories, std::vector<TreeNode>& out) {
  std::vector<const Node*> children;
  for (const auto& [key, child] : parent.children) children.push_back(child.get());
  std::sort(children.begin(), children.end(), [](const Node* a, const Node* b) { return a->bytes > b->bytes; });
  if (categories) std::stable_sort(children.begin(), children.end(), higher_in_stack);
  TreeNode rest{.parent = parent_index, .depth = depth, .category = "unknown", .rest = true};
  // At most a tenth is "more": what many equal parts add up to must not hide among them.
  double left = 0;
  for (const Node* child : children) left += child->bytes;
  const double most_rest = left / 10;
  double rest_most = 0;
  std::uint64_t left_out = 0;
  for (std::size_t i = 0; i < children.size(); ++i) {
    if ((i >= kMostChildren && left <= most_rest) || out.size() >= kMostNodes) {
      rest.bytes += children[i]->bytes;
      rest.blocks += children[i]->blocks;
      if (children[i]->bytes > rest_most) {
        rest_most = children[i]->bytes;
        rest.category = main_category(*children[i]);
      }
      ++left_out;
      continue;
    }
    const auto index = static_cast<std::int64_t>(out.size());
    out.push_back({.parent = parent_index,
                   .depth = depth,
                   .name = children[i]->name,
                   .category = main_category(*children[i]),
                   .bytes = children[i]->bytes,
                   .blocks = children[i]->blocks});
    left -= children[i]->bytes;
    flatten(*children[i], index, depth + 1, false, out);
  }
  if (left_out == 0) return;
  rest.name = fmt::format("{} more", left_out);
  out.push_back(std::move(rest));
}

}  // namespace

Result<std::vector<analyze::By>> levels_from(std::string_view text) {
  std::vector<analyze::By> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const auto by = analyze::by_from(text.substr(0, end));
    if (!by) return std::unexpected(by.error());
    if (out.size() < kMostLevels && std::find(out.begin(), out.end(), *by) == out.end()) out.push_back(*by);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (out.empty()) out = {analyze::By::category, analyze::By::layer, analyze::By::op, analyze::By::line};
  return out;
}

std::vector<TreeNode> tree_of(const std::vector<analyze::Group>& groups, const std::vector<analyze::By>& levels) {
  const auto category_level =
      static_cast<std::size_t>(std::find(levels.begin(), levels.end(), analyze::By::category) - levels.begin());
  const auto layer_level = static_cast<std::size_t>(std::find(levels.begin(), levels.end(), analyze::By::layer) - levels.begin());
  std::map<std::string, analyze::Bytes> layers;
  for (const analyze::Group& group : groups)
    if (layer_level < group.keys.size()) layers[group.keys[layer_level]] += group.bytes;
  const auto fold = layers.size() > kMostChildren ? analyze::LayerFold::for_largest(layers, kMostChildren) : analyze::LayerFold();
  Node root;
  for (const analyze::Group& group : groups) add(root, group, category_level, layer_level, fold);
  std::vector<TreeNode> out;
  flatten(root, -1, 0, category_level == 0, out);
  return out;
}

}  // namespace vramscope::serve
