#include "analyze/query/filter.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <regex>

#include <fmt/format.h>

#include "analyze/attribute/categories.h"
#include "analyze/gen/texts.h"
#include "analyze/index/lifetime.h"
#include "analyze/query/block_text.h"
#include "analyze/query/filter_text.h"

namespace vramscope::analyze {

// A compiled term or a junction of terms.
struct Filter::Node {
  enum class Type { all, any, not_, by_kind, by_layer, by_attribute, test } type = Type::all;
  std::vector<std::unique_ptr<Node>> children;
  std::vector<std::uint8_t> yes;                // by_kind: for each kind; by_layer: for each name; by_attribute: for each code
  std::uint32_t (*code)(Attributes) = nullptr;  // by_attribute
  std::function<bool(std::uint64_t)> test;

  bool matches(const Store& store, std::uint64_t alloc) const {
    switch (type) {
      case Type::all:
        return std::ranges::all_of(children, [&](const auto& c) { return c->matches(store, alloc); });
      case Type::any:
        return std::ranges::any_of(children, [&](const auto& c) { return c->matches(store, alloc); });
      case Type::not_:
        return !children[0]->matches(store, alloc);
      case Type::by_kind:
        return lookup(store.kind[alloc]);
      case Type::by_layer:
        return lookup(store.attributes_of(alloc).layer());
      case Type::by_attribute:
        return lookup(code(store.attributes_of(alloc)));
      case Type::test:
        return test(alloc);
    }
    return false;
  }
  bool single_blocks() const {
    return type == Type::test || std::ranges::any_of(children, [](const auto& c) { return c->single_blocks(); });
  }
  bool lookup(std::uint32_t i) const { return i < yes.size() && yes[i] != 0; }
};

namespace {

using Node = Filter::Node;
using NodePtr = std::unique_ptr<Node>;

std::string all_categories() {
  std::string words;
  for (std::size_t c = 0; c < kShown; ++c) words += (c > 0 ? ", " : "") + filter_word(name_of(static_cast<Shown>(c)));
  return words;
}

// One parsed term before it is bound to a store.
struct Term {
  std::string field, op, value;
  std::string word;  // as written, for errors
};

class Compiler {
 public:
  Compiler(std::string_view text, const Store& store, const FilterContext& context)
      : words_(split_filter(text)), store_(store), context_(context) {}

  Result<NodePtr> compile() {
    if (!words_) return std::unexpected(words_.error());
    auto root = any();
    if (root && at_ < words_->size()) return fail(filter_unexpected((*words_)[at_].text));
    return root;
  }

 private:
  bool peek(FilterWord::Type type) const { return at_ < words_->size() && (*words_)[at_].type == type; }

  Result<NodePtr> any() {
    auto node = std::make_unique<Node>();
    node->type = Node::Type::any;
    while (true) {
      auto part = all();
      if (!part) return part;
      node->children.push_back(std::move(*part));
      if (!peek(FilterWord::or_)) break;
      ++at_;
    }
    return node->children.size() == 1 ? std::move(node->children[0]) : std::move(node);
  }

  Result<NodePtr> all() {
    auto node = std::make_unique<Node>();
    node->type = Node::Type::all;
    do {
      auto part = unary();
      if (!part) return part;
      node->children.push_back(std::move(*part));
      if (peek(FilterWord::and_)) {
        ++at_;
        if (at_ == words_->size()) return fail(std::string(kFilterLacksTerm));
      }
    } while (at_ < words_->size() && !peek(FilterWord::or_) && !peek(FilterWord::close));
    return node->children.size() == 1 ? std::move(node->children[0]) : std::move(node);
  }

  Result<NodePtr> unary() {
    if (at_ == words_->size()) return fail(std::string(kFilterEndsEarly));
    if (++depth_ > 200) return fail("filter: nested too deeply");
    const FilterWord& word = (*words_)[at_++];
    Result<NodePtr> out = fail(filter_unexpected(word.text));
    if (word.type == FilterWord::not_) {
      auto inner = unary();
      if (!inner) return inner;
      auto node = std::make_unique<Node>();
      node->type = Node::Type::not_;
      node->children.push_back(std::move(*inner));
      out = std::move(node);
    } else if (word.type == FilterWord::open) {
      out = any();
      if (out && !peek(FilterWord::close)) return fail(std::string(kFilterLacksParenthesis));
      ++at_;
    } else if (word.type == FilterWord::term) {
      out = term({word.field, word.op, word.value, word.text});
    }
    --depth_;
    return out;
  }

  // --- terms ------------------------------------------------------------------------------------------------------------------

  using Match = std::function<bool(std::string_view)>;

  Result<Match> matcher(const Term& t, bool substring) {
    if (t.value.size() >= 2 && t.value.front() == '/' && t.value.back() == '/') {
      try {
        auto re = std::make_shared<std::regex>(t.value.substr(1, t.value.size() - 2),
                                               std::regex::ECMAScript | std::regex::icase | std::regex::optimize);
        return Match([re](std::string_view s) { return std::regex_search(s.begin(), s.end(), *re); });
      } catch (const std::regex_error&) {
        return fail(filter_invalid_expression(t.value));
      }
    }
    std::string value = t.value;
    if (substring) value = "*" + value + "*";
    return Match([value](std::string_view s) { return glob(value, s); });
  }

  NodePtr kind_node(const std::function<bool(const Kind&)>& yes) {
    auto node = std::make_unique<Node>();
    node->type = Node::Type::by_kind;
    node->yes.reserve(store_.kinds.size());
    for (const Kind& kind : store_.kinds) node->yes.push_back(yes(kind) ? 1 : 0);
    return node;
  }

  NodePtr test_node(std::function<bool(std::uint64_t)> test) {
    auto node = std::make_unique<Node>();
    node->type = Node::Type::test;
    node->test = std::move(test);
    return node;
  }

  NodePtr attribute_node(std::uint32_t (*code)(Attributes), std::size_t codes,
                         const std::function<std::string(std::uint32_t)>& text, const Match& match) {
    auto node = std::make_unique<Node>();
    node->type = Node::Type::by_attribute;
    node->code = code;
    for (std::uint32_t c = 0; c < codes; ++c) node->yes.push_back(match(text(c)) ? 1 : 0);
    return node;
  }

  NodePtr layer_node(const Match& match) {
    auto node = std::make_unique<Node>();
    node->type = Node::Type::by_layer;
    for (std::uint32_t i = 0; i < store_.names(); ++i) node->yes.push_back(match(store_.name(i)) ? 1 : 0);
    return node;
  }

  Result<std::function<bool(double)>> compare(const Term& t, std::optional<double> value) {
    if (!value) return fail(filter_needs_number(t.word, t.op));
    double v = *value;
    if (t.op == ">") return std::function<bool(double)>([v](double x) { return x > v; });
    if (t.op == "<") return std::function<bool(double)>([v](double x) { return x < v; });
    if (t.op == ">=") return std::function<bool(double)>([v](double x) { return x >= v; });
    if (t.op == "<=") return std::function<bool(double)>([v](double x) { return x <= v; });
    return std::function<bool(double)>([v](double x) { return x == v; });
  }

  Result<NodePtr> bare(const Term& t) {
    auto match = matcher(t, true);
    if (!match) return std::unexpected(match.error());
    auto node = std::make_unique<Node>();
    node->type = Node::Type::any;
    const Store& s = store_;
    node->children.push_back(
        kind_node([&](const Kind& k) { return (*match)(kind_text(s, k, By::op)) || (*match)(s.name(k.line)); }));
    node->children.push_back(layer_node(*match));
    if (!s.tagged.empty())
      node->children.push_back(test_node([&s, m = *match](std::uint64_t a) {
        std::string name = tag_name(s, a);
        return !name.empty() && m(name);
      }));
    return node;
  }

  Result<NodePtr> live_term(const Term& t) {
    auto at = context_.resolve ? context_.resolve(t.value) : Result<Moment>(fail("filter: live@ is not supported here"));
    if (!at) return std::unexpected(at.error());
    return test_node([&s = store_, m = *at](std::uint64_t a) { return lives_at(s, a, m); });
  }

  Result<NodePtr> born_term(const Term& t) {
    std::string value = t.value;
    if (value.starts_with("step")) value = value.substr(value.starts_with("step:") ? 5 : 4);
    if (value == "outside") return test_node([&s = store_](std::uint64_t a) { return step_index(s, s.birth[a]) < 0; });
    if (auto us = parse_duration(value)) {
      auto test = compare(t, us);
      if (!test) return std::unexpected(test.error());
      return test_node([&s = store_, f = *test](std::uint64_t a) { return f(static_cast<double>(s.time_of_event(s.birth[a]))); });
    }
    auto test = compare(t, parse_number(value));
    if (!test) return std::unexpected(test.error());
    return test_node([&s = store_, f = *test](std::uint64_t a) {
      std::int64_t i = step_index(s, s.birth[a]);
      return i >= 0 && f(static_cast<double>(s.steps[static_cast<std::size_t>(i)].number));
    });
  }

  Result<NodePtr> age_term(const Term& t) {
    Moment now = context_.now;
    auto end_of = [&s = store_, now](std::uint64_t a) {
      std::uint64_t death = s.death[a] == kNone32 ? s.events() : std::uint64_t{s.death[a]};
      return now == kNever ? death : std::min<std::uint64_t>(now, death);
    };
    std::string value = t.value;
    for (std::string_view unit : {"steps", "step"})
      if (value.ends_with(unit)) {
        auto test = compare(t, parse_number(std::string_view(value).substr(0, value.size() - unit.size())));
        if (!test) return std::unexpected(test.error());
        return test_node([&s = store_, f = *test, end_of](std::uint64_t a) {
          auto ended = [&](std::uint64_t pos) {  // steps that were over by then
            return static_cast<double>(std::upper_bound(s.steps.begin(), s.steps.end(), pos,
                                                        [](std::uint64_t p, const StepRow& r) { return p < r.end; }) -
                                       s.steps.begin());
          };
          return f(ended(end_of(a)) - ended(s.birth[a]));
        });
      }
    auto test = compare(t, parse_duration(value));
    if (!test) return fail(fmt::format("filter: \"{}\" expects a time such as 2steps, 5ms or 3s after {}", t.word, t.op));
    return test_node([&s = store_, f = *test, end_of](std::uint64_t a) {
      return f(static_cast<double>(s.time_of(end_of(a))) - static_cast<double>(s.time_of_event(s.birth[a])));
    });
  }

  // region:6 is the pool's region with that number (as the pool map shows it); a word is the framework's own.
  Result<NodePtr> region_term(const Term& t) {
    auto number = parse_number(t.value);
    if (!number) return text_term(t, By::region);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
    for (const auto& r : store_.regions)
      if (!r.row.returned) taken.emplace_back(r.row.address, r.row.bytes);
    if (*number < 0 || *number >= static_cast<double>(taken.size()))
      return fail(fmt::format("filter: there is no region {}; the trace has {}", t.value, taken.size()));
    return test_node([&s = store_, r = taken[static_cast<std::size_t>(*number)]](std::uint64_t a) {
      return s.address[a] >= r.first && s.address[a] - r.first < r.second;
    });
  }

  // By the name that users see, with spaces or underscores, or by the name in the trace.
  Result<NodePtr> category_node(const Term& t, const Match& match) {
    auto node = std::make_unique<Node>();
    node->type = Node::Type::by_attribute;
    node->code = [](Attributes n) { return static_cast<std::uint32_t>(n.category()); };
    for (std::uint32_t c = 0; c < 16; ++c) {
      const auto in_trace = static_cast<trace::Category>(c);
      const Shown category = shown(in_trace);
      node->yes.push_back(
          match(name_of(category)) || match(filter_word(name_of(category))) || match(trace::name_of(in_trace)) ? 1 : 0);
    }
    if (std::ranges::none_of(node->yes, [](auto y) { return y != 0; }))
      return fail(filter_unknown_category(t.value, all_categories()));
    return node;
  }

  Result<NodePtr> text_term(const Term& t, By by) {
    if (t.op != ":" && t.op != "=") return fail(filter_compares_text(t.word, t.field, t.value));
    auto match = matcher(t, false);
    if (!match) return std::unexpected(match.error());
    const Store& s = store_;
    const Match& m = *match;
    switch (by) {
      case By::category:
        return category_node(t, m);
      case By::layer:
        return layer_node(m);
      case By::phase:
        return attribute_node([](Attributes n) { return static_cast<std::uint32_t>(n.stage()); }, kStages,
                              [](std::uint32_t c) { return std::string(name_of(static_cast<Stage>(c))); }, m);
      case By::known:
        return attribute_node([](Attributes n) { return static_cast<std::uint32_t>(n.known()); }, 4,
                              [](std::uint32_t c) { return std::string(name_of(static_cast<Known>(c))); }, m);
      case By::step:
        return test_node([&s, m](std::uint64_t a) { return m(block_text(s, a, By::step)); });
      case By::name:
        return test_node([&s, m](std::uint64_t a) { return m(tag_name(s, a)); });
      // An op matches by its path or by its last part; a line by file and number or by file, with or without folders.
      case By::op:
        return kind_node([&](const Kind& k) {
          std::string op = kind_text(s, k, By::op);
          return m(op) || m(std::string_view(op).substr(op.rfind('/') == std::string::npos ? 0 : op.rfind('/') + 1));
        });
      case By::line:
        return kind_node([&](const Kind& k) {
          std::string_view line = s.name(k.line);
          std::string_view name = line.substr(line.rfind('/') + 1);
          return m(line) || m(line.substr(0, line.rfind(':'))) || m(name) || m(name.substr(0, name.rfind(':')));
        });
      default:
        return kind_node([&](const Kind& k) { return m(kind_text(s, k, by)); });
    }
  }

  Result<NodePtr> term(const Term& t) {
    if (t.field.empty()) return bare(t);
    if (t.value.empty()) return fail(filter_lacks_value(t.field, t.op));
    if (t.field == "live") return live_term(t);
    if (t.field == "born" || (t.field == "step" && t.op != ":")) return born_term(t);
    if (t.field == "age" || t.field == "lifetime") return age_term(t);
    if (t.field == "region") return region_term(t);
    if (t.field == "id") {
      auto test = compare(t, parse_number(t.value));
      if (!test) return std::unexpected(test.error());
      return test_node([f = *test](std::uint64_t a) { return f(static_cast<double>(a)); });
    }
    if (t.field == "kind") return text_term({"category", t.op, t.value, t.word}, By::category);
    bool size = t.field == "size" || t.field == "granted", requested = t.field == "requested", slack = t.field == "slack";
    if (size || requested || slack) {
      auto test = compare(t, parse_size(t.value));
      if (!test) return std::unexpected(test.error());
      return kind_node([&](const Kind& k) {
        return (*test)(static_cast<double>(size        ? k.granted
                                           : requested ? k.requested
                                                       : k.granted - std::min(k.granted, k.requested)));
      });
    }
    auto fields = filter_by_names();
    auto it = std::ranges::find(fields, t.field);
    if (it == fields.end()) return fail(filter_unknown_field(t.field, fmt::format("{}", fmt::join(filter_fields(), ", "))));
    return text_term(t, static_cast<By>(it - fields.begin()));
  }

  Result<std::vector<FilterWord>> words_;
  const Store& store_;
  const FilterContext& context_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Filter::Filter() = default;
Filter::Filter(Filter&&) noexcept = default;
Filter& Filter::operator=(Filter&&) noexcept = default;
Filter::~Filter() = default;

Result<Filter> Filter::compile(std::string_view text, const Store& store, const FilterContext& context) {
  Filter out;
  out.store_ = &store;
  if (text.find_first_not_of(" \t\n") == std::string_view::npos) return out;
  auto root = Compiler(text, store, context).compile();
  if (!root) return std::unexpected(root.error());
  out.root_ = std::move(*root);
  return out;
}

bool Filter::everything() const { return root_ == nullptr; }
bool Filter::single_blocks() const { return root_ != nullptr && root_->single_blocks(); }
bool Filter::matches(std::uint64_t alloc) const { return root_ == nullptr || root_->matches(*store_, alloc); }

}  // namespace vramscope::analyze
