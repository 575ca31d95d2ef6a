// Optimizer state in checkpoints: its formats, and reading in fp32 from any format.
//
// `optimizer.moment1/P` and `optimizer.moment2/P` are F32, BF16, or F16 in the encoding of
// tensor/narrow_numbers.h. BF16 weights have masters: `optimizer.master/P` (F32, or F16 in that
// encoding) or `optimizer.remainder/P` (I16). A remainder and the bits of `weights/P` form an fp32
// master.
#pragma once

#include <span>
#include <string>

#include "weft/checkpoint/state_reader.h"

namespace weft::checkpoint {

enum class StoredMasters { None, Whole, Halves, Remainders };

struct StoredForms {
  FileDtype moment1 = FileDtype::F32, moment2 = FileDtype::F32;
  StoredMasters masters = StoredMasters::None;

  bool operator==(const StoredForms&) const = default;
};

// Formats of a checkpoint, judged by the first tensor of each kind.
StoredForms forms_in(const Manifest& manifest);

// Reads a slice of a parameter's moment or master weight. ConfigError if the checkpoint has none of
// this global shape.
void read_moment1(StateReader& reader,
                  const std::string& parameter,
                  const tensor::Slice& slice,
                  std::span<float> out);
void read_moment2(StateReader& reader,
                  const std::string& parameter,
                  const tensor::Slice& slice,
                  std::span<float> out);
void read_master(StateReader& reader,
                 const std::string& parameter,
                 const tensor::Slice& slice,
                 std::span<float> out);

}  // namespace weft::checkpoint
