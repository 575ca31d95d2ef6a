// What one operation of a device reached, and how much work it is: by counting what has to be done,
// whatever a kernel does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::measure {

enum class WorkUnit { Flop, Byte };  // bytes are those read and those written together

struct DeviceRate {
  std::string name;   // of the operation, and of what it was tried on: "grouped_linear_forward FC1"
  std::string shape;  // "128 x 1024 rows"
  WorkUnit unit = WorkUnit::Byte;
  double work = 0;
  double seconds = 0;  // of a call, median

  double per_second() const { return work / seconds; }
};

// Matrix products of (rows, K) and (N, K), in either direction.
double product_flop(double rows, double n, double k);

// Causal attention, of the half that is not masked. Backward computes the scores again.
struct AttentionWork {
  std::int64_t batch = 0, sequence = 0, heads = 0, groups = 0, head_width = 0, value_width = 0;

  double forward_flop() const;
  double backward_flop() const;
};

// The rows of each expert where they are as uneven as random numbers from 0 up to twice the mean
// (without it); the same in every run.
std::vector<std::int64_t> uneven_rows(std::int64_t experts, std::int64_t mean);

// How a time divides among the classes of work, from the time each of them took.
struct TimeShares {
  double products = 0, attention = 0, memory = 0, idle = 0;  // seconds

  double total() const { return products + attention + memory + idle; }
  // Of a run that was not traced and took `seconds`: what is neither product nor attention.
  // Operations take as long in it; events of the trace between them do not keep the device idle.
  double rest_share(double seconds) const { return 1 - (products + attention) / seconds; }
};

}  // namespace weft::measure
