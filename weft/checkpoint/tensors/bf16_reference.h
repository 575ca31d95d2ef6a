// bf16 error of another implementation against a reference run, as a bar for the engine's bf16. The
// file lies beside the reference run (reference_run.h), in the same folder:
// bf16.safetensors: experts.LAYER (B, S, k), the reference's experts of every token, for each MoE
// layer; error.NAME (1), the errors of logits, loss and grad.NAME.
//
// A choice of experts is discontinuous: if rounding changes it, the later numbers are different,
// not just less exact. Both the other implementation and the engine therefore run with the
// reference's choice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint/huggingface/huggingface.h"
#include "weft/checkpoint/reference_run.h"

namespace weft::checkpoint {

class Bf16Reference {
 public:
  // ConfigError if the file is missing, or does not fit the model and the run.
  Bf16Reference(const std::filesystem::path& folder,
                const HuggingFaceModel& model,
                const ReferenceRun& reference);

  // Experts of the sequences [first, first + count) of the batch, per token, ascending; empty for a
  // dense layer.
  std::vector<std::int32_t> experts(std::int64_t layer,
                                    std::int64_t first,
                                    std::int64_t count) const;
  // Largest difference from the reference over its largest magnitude, for "logits", "loss" or
  // "grad.NAME".
  double error(std::string_view name) const;

 private:
  void read_errors(const SafetensorsFile& file, const HuggingFaceModel& model);

  std::int64_t numbers_a_sequence_;                 // S * k
  std::vector<std::vector<std::int32_t>> experts_;  // by layer (B, S, k)
  std::map<std::string, double, std::less<>> errors_;
};

}  // namespace weft::checkpoint
