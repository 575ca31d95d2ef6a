// One step of a model on one device: forward and backward, the optimizer, and where the time goes.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/measure/device_rate.h"
#include "weft/rules/judged_config.h"
#include "weft/schedule/graph.h"
#include "weft/trace/span.h"

namespace weft::measure {

struct DeviceStepRequest {
  rules::JudgedConfig config;  // one rank, one micro-batch
  int rounds = 10;             // timed, of each kind of step
  // Where to leave the initial weights and the batch for a peer; empty: nowhere. The folder gets a
  // Hugging Face model and tokens.i32, (sequences, sequence + 1) int32.
  std::filesystem::path leave_in;
  std::function<void(const std::string& what)> note;
  const std::atomic<bool>* stop = nullptr;
};

// Forward and backward of so many sequences, without the optimizer; from the host's first call to
// the device's last work.
struct BatchTime {
  std::int64_t sequences = 0;
  double seconds = 0;  // median
  double tokens_per_second = 0;
  double flops_per_second = 0;  // of the model, by derive::flops_per_token
};

// The time of one kind of operation in one step.
struct OperationTime {
  std::string name;
  int calls = 0;
  double seconds = 0;
};

struct DeviceStep {
  BatchTime whole;                  // the micro-batch of the config
  std::optional<BatchTime> single;  // one sequence of several
  double loss = 0;                  // of the micro-batch, with the initial weights
  std::vector<double> losses;       // of each of its sequences alone
  double step_seconds = 0;          // with the optimizer, median
  // Of one traced forward and backward of the micro-batch. Tracing costs time of its own.
  TimeShares shares;
  std::vector<OperationTime> operations;  // longest first
  double issue_seconds_per_node = 0;      // the host's, without what it waited for
  double host_ahead_seconds = 0;          // when it had issued all
  std::int64_t peak_bytes = 0;
};

// Stopped where it was told to.
DeviceStep bench_device_step(const DeviceStepRequest& request);

// The graph without the end of a step: no reductions, no norm, no optimizer.
schedule::Graph forward_and_backward(const schedule::Graph& training);

// Of the operations of one run on the compute lane, from its first to its last.
TimeShares shares_of(const std::vector<trace::Span>& spans);
std::vector<OperationTime> operations_of(const std::vector<trace::Span>& spans);

}  // namespace weft::measure
