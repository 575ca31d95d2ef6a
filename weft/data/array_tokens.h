// Token ids from files of integers: .npy arrays and raw binary.
#pragma once

#include "weft/base/file.h"
#include "weft/data/integer_type.h"
#include "weft/data/npy.h"
#include "weft/data/token_sink.h"

namespace weft::data {

// The array of a .npy file. ConfigError where it is none of token ids.
NpyArray npy_array(const base::InputFile& file);
// One row that is the whole file. ConfigError where it is no whole number of integers.
NpyArray raw_array(const base::InputFile& file, IntegerType type);

// Every row is a document. `file` is one that npy_array or raw_array gave `array` of.
void read_array(const base::InputFile& file, const NpyArray& array, TokenSink& sink);

}  // namespace weft::data
