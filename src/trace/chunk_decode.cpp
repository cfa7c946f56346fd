#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "trace/block.h"
#include "trace/chunk.h"
#include "trace/chunk_layout.h"
#include "trace/column.h"
#include "trace/dictionary.h"
#include "trace/freed_addresses.h"
#include "trace/values.h"

namespace vramscope::trace {
namespace {

using support::ByteReader;
using support::ByteSpan;
using support::unzigzag;

constexpr std::size_t kMaxColumns = 64;  // more are skipped: no version has that many

// One table's columns by field number.
struct RawTable {
  std::uint64_t rows = 0;
  std::array<std::optional<Column>, kMaxColumns> column;
};

// Addresses as differences to the last one of the same site. Sites are numbered by first appearance.
class AddressesBySite {
 public:
  AddressesBySite(std::size_t sites, unsigned shift) : last_(sites), shift_(shift) {}

  std::uint64_t next(std::uint64_t site, std::uint64_t coded) {
    // The first address of a site is relative to the previous row.
    const std::uint64_t base = site == seen_ ? before_ : last_[site];
    return set(site, base + (static_cast<std::uint64_t>(unzigzag(coded)) << shift_));
  }

  std::uint64_t set(std::uint64_t site, std::uint64_t address) {
    seen_ += site == seen_;
    return last_[site] = before_ = address;
  }

 private:
  std::vector<std::uint64_t> last_;
  std::uint64_t before_ = 0;
  std::uint64_t seen_ = 0;
  unsigned shift_;
};

// Decodes the columns of one chunk. Each member returns false if the bytes are inconsistent; `why` says how.
class Decoder {
 public:
  Decoder(const Dictionaries& all, Chunk& chunk, std::vector<std::uint64_t>& ordinals)
      : all_(all), chunk_(chunk), ordinals_(ordinals) {}

  bool decode(ByteSpan payload) {
    ByteReader in(payload);
    if (!take_raw(in) || table_.id != kCommonTable) return no("its first table is not the table of all events");
    if (!common()) return false;
    for_each_table(chunk_.tables, [](EventKind, auto& table) { clear(table); });
    while (in.left() > 0) {
      if (!take_raw(in)) return no("a table ends early");
      if (!one_table()) return false;
    }
    return all_rows_present() && (!reused_ || reused_addresses());
  }

  const char* why() const { return why_; }

 private:
  bool no(const char* why) {
    why_ = why;
    return false;
  }

  template <typename Table>
  static void clear(Table& table) {
    for_each_column(table, [](std::uint64_t, std::string_view, std::string_view, auto& column) { column.clear(); });
  }

  bool take_raw(ByteReader& in) {
    table_ = take_table(in);
    raw_.rows = table_.rows;
    raw_.column.fill(std::nullopt);
    for (std::uint64_t i = 0; i < table_.columns && !in.failed(); ++i) {
      const Column column = take_column(in);
      if (column.field < kMaxColumns) raw_.column[column.field] = column;
    }
    return !in.failed();
  }

  // The column as 64-bit values in scratch_, or zeros if an older version did not write it.
  bool take(std::uint64_t field, std::size_t rows) {
    scratch_.resize(rows);
    const std::optional<Column>& column = raw_.column[field];
    if (column) return decode_column(*column, scratch_) || no("a column is inconsistent");
    std::ranges::fill(scratch_, 0);
    return true;
  }

  // Takes a column whose transform is known, without inverting it.
  bool take_coded(std::uint64_t field, Transform transform, std::size_t rows) {
    scratch_.resize(rows);
    const std::optional<Column>& column = raw_.column[field];
    return (column && column->transform == transform && take_array(column->data, scratch_)) || no("a column is inconsistent");
  }

  template <typename T>
  bool store(std::vector<T>& into) {
    into.resize(scratch_.size());
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < scratch_.size(); ++i) {
      all = std::max(all, scratch_[i]);
      into[i] = from_value<T>(scratch_[i]);
    }
    if constexpr (std::is_same_v<T, SiteId>) {
      if (!sites_readable(scratch_)) return false;
    }
    return scratch_.empty() || fits<T>(all) || no("it refers to something that the file does not contain");
  }

  // Whether a column of T may contain this value: an id is an index into its dictionary.
  template <typename T>
  bool fits(std::uint64_t value) const {
    if constexpr (std::is_same_v<T, StringId>) return value < all_.strings.size();
    if constexpr (std::is_same_v<T, PoolId>) return value < all_.pools.size();
    if constexpr (std::is_same_v<T, SiteId>) return value < all_.sites.size();
    if constexpr (std::is_same_v<T, ThreadId>) return value < std::max<std::size_t>(all_.threads.size(), 1);
    return value <= value_limit<T>();
  }

  bool common() {
    if (raw_.rows > kMaxChunkEvents) return no(kTooManyEvents);
    const auto rows = static_cast<std::size_t>(raw_.rows);
    if (!take(kCommonKind, rows) || !store(chunk_.kind)) return false;
    std::ranges::fill(count_, 0);
    for (const EventKind kind : chunk_.kind) ++count_[std::to_underlying(kind)];
    if (!take(kCommonSeq, rows)) return false;
    chunk_.seq.assign(scratch_.begin(), scratch_.end());
    if (!take(kCommonTime, rows)) return false;
    chunk_.time_us.assign(scratch_.begin(), scratch_.end());
    if (!take(kCommonThread, rows) || !store(chunk_.thread)) return false;
    ordinals_.clear();
    if (!raw_.column[kCommonOrdinal]) return true;
    if (!take(kCommonOrdinal, count_[std::to_underlying(EventKind::alloc)])) return false;
    ordinals_.assign(scratch_.begin(), scratch_.end());
    return std::ranges::is_sorted(ordinals_) || no("its ordinals are not in ascending order");
  }

  bool one_table() {
    bool good = true;
    for_each_table(chunk_.tables, [&]<typename Table>(EventKind kind, Table& table) {
      if (std::to_underlying(kind) != table_.id) return;
      if (raw_.rows != count_[std::to_underlying(kind)] || table.size() != 0) {
        good = no("a table has more or fewer rows than there are events of its kind");
      } else if constexpr (std::is_same_v<Table, AllocColumns>) {
        good = allocs(table);
      } else if constexpr (std::is_same_v<Table, FreeColumns>) {
        good = frees(table);
      } else {
        good = other(table);
      }
    });
    return good;
  }

  bool sites_readable(const Values& sites) {
    for (const std::uint64_t site : sites) {
      if (site >= all_.sites.size()) return no("it refers to something that the file does not contain");
      if ((all_.sites[site].flags & kLostSite) != 0) return no("the names that it needs are damaged");
    }
    return true;
  }

  bool allocs(AllocColumns& table) {
    const auto rows = static_cast<std::size_t>(raw_.rows);
    if (!raw_.column[kAllocSite]) return no("a column is missing");
    index_.resize(rows);
    if (!decode_dict(*raw_.column[kAllocSite], distinct_, index_)) return no("a column is inconsistent");
    if (!sites_readable(distinct_)) return false;
    table.site.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) table.site[i] = static_cast<SiteId>(distinct_[index_[i]]);

    const std::optional<Column>& address = raw_.column[kAllocAddress];
    if (address && address->transform == Transform::reused) {
      reused_ = *address;  // known once the frees are
    } else if (!take_coded(kAllocAddress, Transform::by_site, rows)) {
      return false;
    } else {
      table.address.resize(rows);
      AddressesBySite by_site(distinct_.size(), address->shift);
      for (std::size_t i = 0; i < rows; ++i) table.address[i] = by_site.next(index_[i], scratch_[i]);
    }

    if (!take_coded(kAllocGranted, Transform::over_requested, rows)) return false;
    of_site_.resize(distinct_.size());
    for (std::size_t i = 0; i < distinct_.size(); ++i) of_site_[i] = all_.sites[distinct_[i]].requested;
    table.granted.resize(rows);
    for (std::size_t i = 0; i < rows; ++i)
      table.granted[i] = of_site_[index_[i]] += static_cast<std::uint64_t>(unzigzag(scratch_[i]));

    return take(kAllocStep, rows) && store(table.step);
  }

  bool reused_addresses() {
    AllocColumns& table = chunk_.tables.alloc;
    const std::size_t rows = table.granted.size();
    ByteReader in(reused_->data);
    Values ago(rows);
    if (!ordinals_.empty() || !take_sized_array(in, ago)) return no("a column is inconsistent");
    scratch_.resize(static_cast<std::size_t>(std::ranges::count(ago, 0u)));
    if (!take_array(in.bytes(in.left()), scratch_)) return no("a column is inconsistent");

    table.address.resize(rows);
    AddressesBySite by_site(distinct_.size(), reused_->shift);
    FreedAddresses freed;
    constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
    struct SizeOfSite {
      std::uint64_t granted = 0;
      std::uint32_t list = kUnknown;
    };
    std::vector<SizeOfSite> size_of_site(distinct_.size());
    std::vector<std::uint32_t> list(rows);
    std::size_t born = 0;
    std::size_t coded = 0;
    std::size_t frees = 0;
    for (const EventKind kind : chunk_.kind) {
      if (kind == EventKind::alloc) {
        SizeOfSite& size = size_of_site[index_[born]];  // mostly the same as last time
        if (size.list == kUnknown || size.granted != table.granted[born])
          size = {table.granted[born], freed.list_of(table.granted[born])};
        list[born] = size.list;
        if (ago[born] == 0) {
          table.address[born] = by_site.next(index_[born], scratch_[coded++]);
        } else if (freed.take(list[born], ago[born], table.address[born])) {
          by_site.set(index_[born], table.address[born]);
        } else {
          return no("it reuses the address of a block that was not freed");
        }
        ++born;
      } else if (kind == EventKind::free_) {
        const std::uint64_t row = chunk_.tables.free.alloc[frees++] - chunk_.first_alloc;
        if (row < born) freed.add(list[row], table.address[row]);
      }
    }
    return true;
  }

  bool frees(FreeColumns& table) {
    const auto rows = static_cast<std::size_t>(raw_.rows);
    if (all_.pools.empty()) return no("it has frees, but the file has no pool");
    if (!take_coded(kFreeAlloc, Transform::back_reference, rows)) return false;
    table.alloc.resize(rows);
    std::uint64_t next = chunk_.first_alloc;
    std::size_t allocs = 0;
    std::size_t row = 0;
    std::size_t unmatched = 0;
    bool good = true;
    for (const EventKind kind : chunk_.kind) {
      if (kind == EventKind::alloc) {
        next = (ordinals_.empty() ? next : ordinals_[allocs]) + 1;
        ++allocs;
      } else if (kind == EventKind::free_) {
        const std::uint64_t back = scratch_[row];
        good &= back <= next;
        table.alloc[row++] = back == 0 ? kNone : next - back;
        unmatched += back == 0;
      }
    }
    if (!good) return no("a free refers to an allocation before the first one");
    table.address.assign(rows, 0);
    table.pool.assign(rows, PoolId{});
    if (unmatched > 0 && !spread_unmatched(table, unmatched)) return false;
    return take(kFreeStream, rows) && store(table.stream);
  }

  bool spread_unmatched(FreeColumns& table, std::size_t unmatched) {
    std::vector<std::uint64_t> address;
    std::vector<PoolId> pool;
    if (!take(kFreeAddress, unmatched) || !store(address) || !take(kFreePool, unmatched) || !store(pool)) return false;
    std::size_t next = 0;
    for (std::size_t row = 0; row < table.alloc.size(); ++row) {
      if (table.alloc[row] != kNone) continue;
      table.address[row] = address[next];
      table.pool[row] = pool[next++];
    }
    return true;
  }

  template <typename Table>
  bool other(Table& table) {
    bool good = true;
    for_each_column(table, [&](std::uint64_t field, std::string_view, std::string_view, auto& column) {
      good = good && take(field, static_cast<std::size_t>(raw_.rows)) && store(column);
    });
    return good;
  }

  // Events of kinds that this version does not know are skipped, so that `kind` and the tables agree.
  bool all_rows_present() {
    std::array<bool, 256> known{};
    bool good = true;
    for_each_table(chunk_.tables, [&](EventKind kind, auto& table) {
      known[std::to_underlying(kind)] = true;
      if (table.size() != count_[std::to_underlying(kind)]) good = no("the table of an event kind is missing");
    });
    if (!good) return false;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < chunk_.kind.size(); ++i) {
      if (!known[std::to_underlying(chunk_.kind[i])]) continue;
      chunk_.kind[kept] = chunk_.kind[i];
      chunk_.seq[kept] = chunk_.seq[i];
      chunk_.time_us[kept] = chunk_.time_us[i];
      chunk_.thread[kept++] = chunk_.thread[i];
    }
    chunk_.kind.resize(kept);
    chunk_.seq.resize(kept);
    chunk_.time_us.resize(kept);
    chunk_.thread.resize(kept);
    return true;
  }

  const Dictionaries& all_;
  Chunk& chunk_;
  std::vector<std::uint64_t>& ordinals_;
  const char* why_ = "";
  TableHead table_;
  RawTable raw_;
  std::array<std::size_t, 256> count_{};  // events of each kind
  std::optional<Column> reused_;          // the column of addresses, if frees are needed to read it
  Values scratch_;
  Values index_;
  Values distinct_;
  Values of_site_;
};

}  // namespace

Status decode_chunk(ByteSpan payload, const Dictionaries& all, Chunk& chunk, std::vector<std::uint64_t>& ordinals) {
  Decoder decoder(all, chunk, ordinals);
  if (!decoder.decode(payload)) return fail(decoder.why());
  return {};
}

}  // namespace vramscope::trace
