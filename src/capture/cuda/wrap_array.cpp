// Arrays: the driver does not report their size, but the descriptor contains it.
#include "capture/cuda/driver.h"
#include "capture/cuda/events.h"
#include "capture/cuda/place.h"

using namespace vramscope::capture::cuda;
using blocks::Space;
namespace spool = vramscope::spool;

namespace {

struct Format {
  std::int32_t first, last;  // values of CUarray_format
  std::uint32_t bytes;       // of one element: a channel, a 4 x 4 block, or two pixels
  enum { per_channel, per_pixel, per_block, per_two_pixels } unit;
};

constexpr Format kFormats[] = {
    {0x01, 0x01, 1, Format::per_channel},    {0x02, 0x02, 2, Format::per_channel},    {0x03, 0x03, 4, Format::per_channel},
    {0x08, 0x08, 1, Format::per_channel},    {0x09, 0x09, 2, Format::per_channel},    {0x0a, 0x0a, 4, Format::per_channel},
    {0x10, 0x10, 2, Format::per_channel},    {0x20, 0x20, 4, Format::per_channel},    {0x50, 0x50, 4, Format::per_pixel},
    {0x91, 0x92, 8, Format::per_block},      {0x93, 0x96, 16, Format::per_block},     {0x97, 0x98, 8, Format::per_block},
    {0x99, 0x9e, 16, Format::per_block},     {0xb0, 0xb0, 3, Format::per_two_pixels}, {0x9f, 0xa1, 6, Format::per_two_pixels},
    {0xa2, 0xa2, 4, Format::per_two_pixels}, {0xa5, 0xa5, 4, Format::per_two_pixels}, {0xa3, 0xa4, 8, Format::per_two_pixels},
    {0xa6, 0xa7, 8, Format::per_two_pixels}, {0xa8, 0xa9, 4, Format::per_pixel},      {0xb1, 0xb1, 8, Format::per_pixel},
    {0xb2, 0xb2, 3, Format::per_pixel},      {0xb3, 0xb3, 6, Format::per_pixel},      {0xc0, 0xc0, 1, Format::per_pixel},
    {0xc1, 0xc1, 2, Format::per_pixel},      {0xc2, 0xc2, 4, Format::per_pixel},      {0xc3, 0xc3, 2, Format::per_pixel},
    {0xc4, 0xc4, 4, Format::per_pixel},      {0xc5, 0xc5, 8, Format::per_pixel},      {0xc6, 0xc6, 1, Format::per_pixel},
    {0xc7, 0xc7, 2, Format::per_pixel},      {0xc8, 0xc8, 4, Format::per_pixel},      {0xc9, 0xc9, 2, Format::per_pixel},
    {0xca, 0xca, 4, Format::per_pixel},      {0xcb, 0xcb, 8, Format::per_pixel},
};

struct Size {
  std::uint64_t bytes;
  bool known;
};

std::uint64_t at_least_one(std::uint64_t value) { return value != 0 ? value : 1; }

Size size_of(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  if ((d.flags & (kArraySparse | kArrayDeferred)) != 0) return {0, true};  // memory comes with a mapping
  const std::uint64_t height = at_least_one(d.height), depth = at_least_one(d.depth);
  const std::uint64_t pixels = d.width * height * depth;
  for (const Format& format : kFormats) {
    if (d.format < format.first || d.format > format.last) continue;
    switch (format.unit) {
      case Format::per_channel:
        return {pixels * d.channels * format.bytes, true};
      case Format::per_pixel:
        return {pixels * format.bytes, true};
      case Format::per_block:
        return {(d.width + 3) / 4 * ((height + 3) / 4) * depth * format.bytes, true};
      case Format::per_two_pixels:
        return {pixels * format.bytes / 2, true};
    }
  }
  return {pixels * at_least_one(d.channels) * 4, false};
}

Size size_of(const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned levels) {
  Size sum = {0, true};
  CUDA_ARRAY3D_DESCRIPTOR level = d;
  const bool layered = (d.flags & (kArrayLayered | kArrayCubemap)) != 0;  // then depth counts layers
  for (unsigned i = 0; i < levels && i < 32; ++i) {
    const Size size = size_of(level);
    sum = {sum.bytes + size.bytes, sum.known && size.known};
    level.width = level.width > 1 ? level.width / 2 : level.width;
    level.height = level.height > 1 ? level.height / 2 : level.height;
    if (!layered && level.depth > 1) level.depth /= 2;
  }
  return sum;
}

template <typename Forward>
CUresult creating(Caller caller, void* const* out, Size size, Forward forward) {
  if (!recording()) return forward();
  const Place place = current_place();
  const CUresult result = forwarded(forward);
  if (size.bytes == 0) return result;
  Allocation allocation;
  allocation.caller = caller;
  allocation.space = Space::array;
  allocation.key = allocation.handle = result == kSuccess ? reinterpret_cast<std::uint64_t>(*out) : 0;
  allocation.requested = size.bytes;
  allocation.context = reinterpret_cast<std::uint64_t>(place.context);
  allocation.pool = family_pool(Family::array, place.device);
  allocation.record_flags = size.known ? std::uint8_t{0} : std::uint8_t{spool::kFlagUnknownSize};
  allocation.device = static_cast<std::int8_t>(place.device);
  record_outcome(result, allocation);
  return result;
}

template <typename Forward>
CUresult destroying(const void* array, Forward forward) {
  return recording() ? freeing(Space::array, reinterpret_cast<std::uint64_t>(array), 0, 0, forward) : forward();
}

}  // namespace

extern "C" {

CUresult vs_cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* d) {
  const Size size = d == nullptr ? Size{} : size_of({d->width, d->height, 0, d->format, d->channels, 0});
  return creating(VS_CALLER, out, size, [=] { return VS_REAL(cuArrayCreate_v2)(out, d); });
}

CUresult vs_cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* d) {
  const Size size = d == nullptr ? Size{} : size_of(*d);
  return creating(VS_CALLER, out, size, [=] { return VS_REAL(cuArray3DCreate_v2)(out, d); });
}

CUresult vs_cuMipmappedArrayCreate(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* d, unsigned levels) {
  const Size size = d == nullptr ? Size{} : size_of(*d, levels);
  return creating(VS_CALLER, out, size, [=] { return VS_REAL(cuMipmappedArrayCreate)(out, d, levels); });
}

CUresult vs_cuArrayDestroy(CUarray array) {
  return destroying(array, [=] { return VS_REAL(cuArrayDestroy)(array); });
}

CUresult vs_cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return destroying(array, [=] { return VS_REAL(cuMipmappedArrayDestroy)(array); });
}
}
