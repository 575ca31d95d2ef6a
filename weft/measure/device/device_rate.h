// Rate of one operation of a device, and the size of its work. The work is what the operation
// requires, independent of the kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::measure {

enum class WorkUnit { Flop, Byte };  // byte: bytes read plus bytes written

struct DeviceRate {
  std::string name;   // operation and case: "grouped_linear_forward FC1"
  std::string shape;  // "128 x 1024 rows"
  WorkUnit unit = WorkUnit::Byte;
  double work = 0;
  double seconds = 0;  // median of the calls

  double per_second() const { return work / seconds; }
};

// FLOPs of a product of (rows, K) and (N, K), in any direction.
double product_flop(double rows, double n, double k);

// Causal attention, counting the unmasked half. Backward recomputes the scores.
struct AttentionWork {
  std::int64_t batch = 0, sequence = 0, heads = 0, groups = 0, head_width = 0, value_width = 0;

  double forward_flop() const;
  double backward_flop() const;
};

// Rows per expert, drawn uniformly from 0 up to (excluding) twice the mean; the same in every run.
std::vector<std::int64_t> uneven_rows(std::int64_t experts, std::int64_t mean);

// Split of a time by class of work.
struct TimeShares {
  double products = 0, attention = 0, memory = 0, idle = 0;  // seconds

  double total() const { return products + attention + memory + idle; }
  // Share without products and attention in an untraced run of `seconds`. Assumes equal operation
  // times; trace events add no idle time in it.
  double rest_share(double seconds) const { return 1 - (products + attention) / seconds; }
};

}  // namespace weft::measure
