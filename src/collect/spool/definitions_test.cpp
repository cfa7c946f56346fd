#include "collect/spool/definitions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>

namespace vramscope::collect {
namespace {

template <typename Record>
void add(Definitions& definitions, spool::RecordKind kind, Record record, std::string_view more = {}) {
  std::vector<std::byte> bytes(sizeof record + more.size() + spool::kSlotBytes);
  record.head.kind = kind;
  std::memcpy(bytes.data(), &record, sizeof record);
  std::ranges::copy(std::as_bytes(std::span(more)), bytes.begin() + sizeof record);
  definitions.add(record.head, bytes);
}

void add_text(Definitions& definitions, std::uint32_t id, std::string_view text) {
  spool::StringRecord record{};
  record.id = id;
  record.bytes = static_cast<std::uint32_t>(text.size());
  add(definitions, spool::RecordKind::string, record, text);
}

TEST(Definitions, AnIdFarBeyondTheOthersSizesNoTable) {
  Definitions definitions;
  add_text(definitions, 0xFFFFFFFF, "far");
  add_text(definitions, 1u << 24, "also far");
  EXPECT_LT(definitions.dense_texts(), 100'000u);
  ASSERT_NE(definitions.text(0xFFFFFFFF), nullptr);
  EXPECT_EQ(*definitions.text(0xFFFFFFFF), "far");
  EXPECT_EQ(definitions.text(0xFFFFFFFE), nullptr);
}

TEST(Definitions, TextsStayKnownWhenTheTableReachesThem) {
  Definitions definitions;
  for (std::uint32_t id = 100'000; id > 0; id -= 5) add_text(definitions, id, std::to_string(id));
  for (std::uint32_t id = 1; id <= 100'000; ++id)
    if (id % 5 != 0) add_text(definitions, id, std::to_string(id));
  for (std::uint32_t id = 1; id <= 100'000; ++id) {
    ASSERT_NE(definitions.text(id), nullptr) << id;
    ASSERT_EQ(*definitions.text(id), std::to_string(id));
  }
}

// The simple way, as far as it goes: the last one that covers the address.
TEST(Definitions, TheModuleMappedLastIsTheOne) {
  Definitions definitions;
  std::vector<spool::ModuleRecord> all;
  std::mt19937 draw(5);
  for (std::uint32_t i = 0; i < 200; ++i) {
    spool::ModuleRecord record{};
    record.base = draw() % 5000;
    record.bytes = draw() % 400;
    record.path = i + 1;
    all.push_back(record);
    add(definitions, spool::RecordKind::module, record);
    for (std::uint64_t address = 0; address < 5600; address += 7) {
      std::uint32_t expected = 0;
      for (const auto& each : all)
        if (address - each.base < each.bytes) expected = each.path;
      const auto* found = definitions.module_at(address);
      ASSERT_EQ(found != nullptr ? found->path : 0, expected) << address;
      if (found != nullptr) {
        ASSERT_EQ(found->base, all[expected - 1].base);
      }
    }
  }
}

TEST(Definitions, ManyModulesAndManyAddressesStayQuick) {
  Definitions definitions;
  for (std::uint64_t i = 0; i < 300'000; ++i) {
    spool::ModuleRecord record{};
    record.base = i << 12;
    record.bytes = ~std::uint64_t{0};
    record.path = 1;
    add(definitions, spool::RecordKind::module, record);
  }
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < 300'000; ++i) found += definitions.module_at(i << 12)->path;
  EXPECT_EQ(found, 300'000u);
}

}  // namespace
}  // namespace vramscope::collect
