// Token ids from integer files: .npy arrays and raw binary.
#pragma once

#include "weft/base/files/file.h"
#include "weft/data/integer_type.h"
#include "weft/data/npy.h"
#include "weft/data/token_sink.h"

namespace weft::data {

// Array of a .npy file. Throws ConfigError if it does not hold token ids.
NpyArray npy_array(const base::InputFile& file);
// Raw file as one row. Throws ConfigError if it is not a whole number of integers.
NpyArray raw_array(const base::InputFile& file, IntegerType type);

// Adds every row as a document. `array` comes from npy_array or raw_array of this file.
void read_array(const base::InputFile& file, const NpyArray& array, TokenSink& sink);

}  // namespace weft::data
