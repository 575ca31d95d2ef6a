// How far another implementation is from a reference run where it computes in bf16, to hold the
// engine's bf16 against. Beside the reference run (reference_run.h), in the same folder:
//   bf16.safetensors  experts.LAYER (B, S, k): the experts of every token in the reference, for
//                     each MoE layer; error.NAME (1): the error of logits, loss and grad.NAME
// A choice of experts is a jump: where rounding makes a router choose another expert, what follows
// is another number, not one that is less exact. So the errors are those of a run that was given
// the reference's choice, and a run that is held against them is given it as well.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint/huggingface.h"
#include "weft/checkpoint/reference_run.h"

namespace weft::checkpoint {

class Bf16Reference {
 public:
  // ConfigError where the file is missing, and where it does not fit the model and the run.
  Bf16Reference(const std::filesystem::path& folder,
                const HuggingFaceModel& model,
                const ReferenceRun& reference);

  // Of the sequences [first, first + count) of the batch, token by token, ascending; empty for a
  // dense layer.
  std::vector<std::int32_t> experts(std::int64_t layer,
                                    std::int64_t first,
                                    std::int64_t count) const;
  // The largest difference from the reference over the reference's largest magnitude, of "logits",
  // "loss" or "grad.NAME".
  double error(std::string_view name) const;

 private:
  void read_errors(const SafetensorsFile& file, const HuggingFaceModel& model);

  std::int64_t numbers_a_sequence_;                 // S * k
  std::vector<std::vector<std::int32_t>> experts_;  // by layer (B, S, k)
  std::map<std::string, double, std::less<>> errors_;
};

}  // namespace weft::checkpoint
