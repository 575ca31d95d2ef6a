// Bench of one training step on one device: forward and backward, the optimizer, and the split of
// the time.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/measure/device/device_rate.h"
#include "weft/rules/judged_config.h"
#include "weft/schedule/graph.h"
#include "weft/trace/span.h"

namespace weft::measure {

struct DeviceStepRequest {
  rules::JudgedConfig config;  // one rank, one micro-batch
  int rounds = 10;             // timed rounds of each kind of step
  // Folder for the initial weights and the batch, for a peer; empty: none. It gets a Hugging Face
  // model and tokens.i32, (sequences, sequence + 1) int32.
  std::filesystem::path leave_in;
  std::function<void(const std::string& what)> note;
  const std::atomic<bool>* stop = nullptr;
};

// Forward and backward of `sequences` sequences without the optimizer, from the host's first call
// to the device's last work.
struct BatchTime {
  std::int64_t sequences = 0;
  double seconds = 0;  // median
  double tokens_per_second = 0;
  double flops_per_second = 0;  // FLOP/s of the model, by derive::flops_per_token
};

// Time of one kind of operation in one step.
struct OperationTime {
  std::string name;
  int calls = 0;
  double seconds = 0;
};

struct DeviceStep {
  BatchTime whole;                  // micro-batch of the config
  std::optional<BatchTime> single;  // one sequence; nullopt: the micro-batch has only one
  double loss = 0;                  // micro-batch loss with the initial weights
  std::vector<double> losses;       // loss of each of its sequences alone
  double step_seconds = 0;          // with the optimizer; median
  // Split of one traced forward and backward of the micro-batch. Tracing takes extra time.
  TimeShares shares;
  std::vector<OperationTime> operations;  // longest first
  double issue_seconds_per_node = 0;      // host time without waits
  double host_ahead_seconds = 0;          // device time left when the host had issued all nodes
  std::int64_t peak_bytes = 0;
};

// Throws Stopped when told to stop.
DeviceStep bench_device_step(const DeviceStepRequest& request);

// Graph without the end of a step: no reductions, norm or optimizer.
schedule::Graph forward_and_backward(const schedule::Graph& training);

// Split of one run's operations on the compute lane, from the first to the last.
TimeShares shares_of(const std::vector<trace::Span>& spans);
std::vector<OperationTime> operations_of(const std::vector<trace::Span>& spans);

}  // namespace weft::measure
