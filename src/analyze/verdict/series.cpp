#include "analyze/verdict/series.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace vramscope::analyze {
namespace {

constexpr double kIntervalCaution = 0.25;  // so that 95 % intervals cover 95 % of the true values, neither fewer nor more
constexpr double kTrendCaution = 0.6;      // a false trend is worse than a missed one

// How much less a correlated series reveals than an independent one of the same length: the relative variance of its mean. The
// correlation is known only roughly; it is assumed to be higher by `caution` standard errors.
double inflation(std::span<const double> residual, double caution) {
  auto n = static_cast<double>(residual.size());
  double sum = 0, lag = 0;
  for (std::size_t i = 0; i < residual.size(); ++i) {
    sum += residual[i] * residual[i];
    if (i > 0) lag += residual[i] * residual[i - 1];
  }
  if (sum <= 0) return 1;
  double r = lag / sum;
  double phi = r + (1 + 3 * std::max(r, 0.0)) / n;  // Kendall's correction of the small-sample bias
  phi += caution * std::sqrt(std::max(0.0, 1 - phi * phi) / n);
  phi = std::clamp(phi, 0.0, 0.97);
  return (1 + phi) / (1 - phi) - 2 * phi * (1 - std::pow(phi, n)) / (n * (1 - phi) * (1 - phi));
}

}  // namespace

double t_quantile(double degrees) {
  const double z = 1.959964, d = std::max(degrees, 1.5);  // Cornish-Fisher expansion
  return z + (z * z * z + z) / (4 * d) + (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * d * d) +
         (3 * std::pow(z, 7) + 19 * std::pow(z, 5) + 17 * z * z * z - 15 * z) / (384 * d * d * d);
}

Interval mean_interval(std::span<const double> series) {
  Interval out;
  if (series.empty()) return out;
  auto n = static_cast<double>(series.size());
  for (double x : series) out.value += x / n;
  out.low = out.high = out.value;
  if (series.size() < 2) return out;
  std::vector<double> residual;
  double sum = 0;
  for (double x : series) {
    residual.push_back(x - out.value);
    sum += residual.back() * residual.back();
  }
  if (sum <= 1e-9 * out.value * out.value) return out;  // the same in every step
  double f = std::min(inflation(residual, kIntervalCaution), n * 0.9);
  double variance = sum / (n - 1) / (1 - (f - 1) / n);  // neighbors that move together hide part of the spread
  double half = t_quantile(std::max(n / f, 2.0) - 1) * std::sqrt(variance * f / n);
  out.low = out.value - half;
  out.high = out.value + half;
  return out;
}

Trend trend_of(std::span<const double> series) {
  Trend out;
  std::size_t count = series.size();
  if (count < 3) return out;
  auto n = static_cast<double>(count);
  double mean_x = (n - 1) / 2, mean = 0, sxx = 0, sxy = 0;
  for (double y : series) mean += y / n;
  for (std::size_t i = 0; i < count; ++i) {
    double dx = static_cast<double>(i) - mean_x;
    sxx += dx * dx;
    sxy += dx * (series[i] - mean);
  }
  out.slope = sxy / sxx;
  out.start = mean - out.slope * mean_x;
  out.end = mean + out.slope * mean_x;
  std::vector<double> residual;
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    residual.push_back(series[i] - mean - out.slope * (static_cast<double>(i) - mean_x));
    sum += residual.back() * residual.back();
  }
  double error = std::sqrt(sum / std::max(1.0, n - 2) * inflation(residual, kTrendCaution) / sxx);
  double scale = std::abs(out.slope) * 1e-9 + 1e-12;
  out.t = out.slope / std::max(error, scale);
  return out;
}

}  // namespace vramscope::analyze
