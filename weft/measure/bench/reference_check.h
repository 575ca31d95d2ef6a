// Comparison of the engine with a reference run, under any layout: logits, loss and all gradients
// of the first batch, then, in fp32, the training losses.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/checkpoint/huggingface/huggingface.h"
#include "weft/checkpoint/reference_run.h"
#include "weft/checkpoint/tensors/bf16_reference.h"
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

// Config of a reference run: model and optimizer from its folder, batch and sequence from its data.
// Layout, micro-batch size and runtime stay as in `base`.
config::Config reference_config(const config::Config& base,
                                const checkpoint::HuggingFaceModel& model,
                                const checkpoint::ReferenceRun& reference);

// Checks fp32 on the ranks of config.runtime. Empty in a process without rank 0.
std::vector<Check> check_reference(const rules::JudgedConfig& config,
                                   const checkpoint::HuggingFaceModel& model,
                                   const checkpoint::ReferenceRun& reference,
                                   const train::Process& process);

// Checks bf16 with the reference's expert choices. Limit per tensor: 1.5 times the other
// implementation's bf16 error against the fp32 reference, or 1.5 times one rounding if that is
// larger. Training is not compared: after the first update the routers choose freely and the runs
// diverge.
std::vector<Check> check_bf16_reference(const rules::JudgedConfig& config,
                                        const checkpoint::HuggingFaceModel& model,
                                        const checkpoint::ReferenceRun& reference,
                                        const checkpoint::Bf16Reference& bf16,
                                        const train::Process& process);

}  // namespace weft::measure
