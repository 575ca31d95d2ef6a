// Holds the engine, under any layout, against a reference run: logits, loss and every gradient of
// the first batch, then, in fp32, the losses of training.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/checkpoint/bf16_reference.h"
#include "weft/checkpoint/huggingface.h"
#include "weft/checkpoint/reference_run.h"
#include "weft/config/config.h"
#include "weft/rules/judged_config.h"
#include "weft/train/launch.h"

namespace weft::measure {

struct Check {
  std::string name;
  double error = 0;  // largest difference over the reference's largest magnitude
  double tolerance = 0;
  bool pass() const { return error <= tolerance; }  // false for NaN
};

// The config of a reference run: model and optimizer from its folder; batch and sequence from its
// data. What `base` sets for layout, micro-batch size and runtime stays.
config::Config reference_config(const config::Config& base,
                                const checkpoint::HuggingFaceModel& model,
                                const checkpoint::ReferenceRun& reference);

// In fp32. Runs on the ranks of config.runtime. Empty in a process that does not hold rank 0.
std::vector<Check> check_reference(const rules::JudgedConfig& config,
                                   const checkpoint::HuggingFaceModel& model,
                                   const checkpoint::ReferenceRun& reference,
                                   const train::Process& process);

// In bf16, with the experts that the reference chose: no tensor may be further from the fp32
// reference than 1.5 times what the other implementation is in bf16, or than 1.5 times one
// rounding, where the other is nearer than that by luck. Training is no part of it: after the first
// update the routers choose for themselves, and runs part.
std::vector<Check> check_bf16_reference(const rules::JudgedConfig& config,
                                        const checkpoint::HuggingFaceModel& model,
                                        const checkpoint::ReferenceRun& reference,
                                        const checkpoint::Bf16Reference& bf16,
                                        const train::Process& process);

}  // namespace weft::measure
