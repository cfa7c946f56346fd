#include "support/json_reader.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace vramscope::support {
namespace {

// Called by the parser, in the order of the text; false ends the parse. The names are RapidJSON's.
// NOLINTBEGIN(readability-identifier-naming)
class Builder {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  bool Null() { return add(JsonValue()); }
  bool Bool(bool value) { return add(JsonValue(value)); }
  // Numbers come as text (kParseNumbersAsStringsFlag), so that the parser's own conversion is not used: it shifts by clz(0) for
  // "0e308".
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    if (add_number<std::int64_t>(text, text + size) || add_number<std::uint64_t>(text, text + size) ||
        add_number<double>(text, text + size))
      return exceeded_ == nullptr;
    exceeded_ = "a number is out of range";
    return false;
  }
  bool String(const char* text, rapidjson::SizeType size, bool) { return add(JsonValue(std::string(text, size))); }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    open_.back().name.assign(text, size);
    return true;
  }
  bool StartObject() { return open(JsonValue(JsonValue::Object())); }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool StartArray() { return open(JsonValue(JsonValue::Array())); }
  bool EndArray(rapidjson::SizeType) { return close(); }

  JsonValue take() { return std::move(root_); }
  const char* exceeded() const { return exceeded_; }  // what ended the parse, or null

 private:
  struct Level {
    JsonValue value;
    std::string name;  // of the member that comes next
  };

  // False if the text is not a number of this kind. Whether the limits allow one more is in exceeded_.
  template <typename Number>
  bool add_number(const char* begin, const char* end) {
    Number value{};
    const auto [last, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || last != end) return false;
    add(JsonValue(value));
    return true;
  }
  bool open(JsonValue container) {
    if (open_.size() >= limits_.depth) exceeded_ = "it is nested too deeply";
    if (exceeded_ == nullptr) open_.push_back({std::move(container), {}});
    return exceeded_ == nullptr;
  }
  bool close() {
    JsonValue done = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(done));
  }
  bool add(JsonValue value) {
    if (++values_ > limits_.values) {
      exceeded_ = "it has too many values";
      return false;
    }
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Level& level = open_.back(); auto* array = std::get_if<JsonValue::Array>(&level.value.content())) {
      array->push_back(std::move(value));
    } else {
      std::get<JsonValue::Object>(level.value.content()).push_back({std::exchange(level.name, {}), std::move(value)});
    }
    return true;
  }

  JsonLimits limits_;
  std::vector<Level> open_;
  JsonValue root_;
  std::size_t values_ = 0;
  const char* exceeded_ = nullptr;
};
// NOLINTEND(readability-identifier-naming)

}  // namespace

std::optional<bool> JsonValue::truth() const {
  const bool* value = std::get_if<bool>(&content_);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::optional<std::uint64_t> JsonValue::count() const {
  if (const auto* value = std::get_if<std::uint64_t>(&content_)) return *value;
  const auto* value = std::get_if<std::int64_t>(&content_);
  return value != nullptr && *value >= 0 ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

std::optional<double> JsonValue::number() const {
  if (const auto* value = std::get_if<double>(&content_)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&content_)) return static_cast<double>(*value);
  const auto* value = std::get_if<std::uint64_t>(&content_);
  return value != nullptr ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

std::optional<std::string_view> JsonValue::text() const {
  const auto* value = std::get_if<std::string>(&content_);
  return value != nullptr ? std::optional<std::string_view>(*value) : std::nullopt;
}

const JsonValue* JsonValue::member(std::string_view name) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  const auto found = std::find_if(members->rbegin(), members->rend(), [&](const Member& each) { return each.name == name; });
  return found != members->rend() ? &found->value : nullptr;
}

Result<JsonValue> read_json(std::string_view text, const JsonLimits& limits) {
  // Iterative: the parser's own recursion would end with the stack before our limit is asked.
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag | rapidjson::kParseNumbersAsStringsFlag;
  rapidjson::MemoryStream in(text.data(), text.size());
  rapidjson::Reader reader;
  Builder builder(limits);
  const rapidjson::ParseResult result = reader.Parse<kFlags>(in, builder);
  if (builder.exceeded() != nullptr) return fail(fmt::format("byte {}: {}", result.Offset(), builder.exceeded()));
  if (result.IsError()) return fail(fmt::format("byte {}: {}", result.Offset(), rapidjson::GetParseError_En(result.Code())));
  // A byte of zero looks like the end to the parser.
  if (in.Tell() != text.size()) return fail(fmt::format("byte {}: something follows the value", in.Tell()));
  return builder.take();
}

}  // namespace vramscope::support
