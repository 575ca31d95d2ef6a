#include "weft/measure/device/device_rate.h"

#include "weft/base/random.h"

namespace weft::measure {
namespace {

constexpr std::uint64_t kKey = 17;

// Number of unmasked pairs of query and key.
double pairs_of(const AttentionWork& work) {
  const auto sequence = static_cast<double>(work.sequence);
  return 0.5 * static_cast<double>(work.batch * work.heads) * sequence * sequence;
}

}  // namespace

double product_flop(double rows, double n, double k) { return 2 * rows * n * k; }

double AttentionWork::forward_flop() const {
  return 2 * pairs_of(*this) * static_cast<double>(head_width + value_width);
}

// Terms: scores and the gradients of queries and keys; gradients of probabilities and values.
double AttentionWork::backward_flop() const {
  return 2 * pairs_of(*this) * static_cast<double>(3 * head_width + 2 * value_width);
}

std::vector<std::int64_t> uneven_rows(std::int64_t experts, std::int64_t mean) {
  std::vector<std::int64_t> rows;
  for (std::int64_t e = 0; e < experts; ++e) {
    const double share = base::uniform(kKey, static_cast<std::uint64_t>(e));
    rows.push_back(static_cast<std::int64_t>(share * static_cast<double>(2 * mean)));
  }
  return rows;
}

}  // namespace weft::measure
