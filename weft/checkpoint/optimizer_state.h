// How checkpoints hold the optimizer's state, and its values in fp32 whatever the form.
//
// `optimizer.moment1/P` and `optimizer.moment2/P` are F32, BF16, or F16 as tensor/narrow_numbers.h
// has them. Where weights are BF16 there are master weights: `optimizer.master/P` (F32, or F16 as
// that header has it), or `optimizer.remainder/P` (I16), which is an fp32 master with the bits of
// `weights/P`.
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

// Of a checkpoint, by the first tensors of each kind.
StoredForms forms_in(const Manifest& manifest);

// Elements of a slice of a parameter's moment or master weight; ConfigError where the checkpoint
// has none of the slice's global shape.
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
