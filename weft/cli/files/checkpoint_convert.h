// weft checkpoint convert
#pragma once

#include "weft/cli/command.h"

namespace weft::cli {

void add_checkpoint_convert(CLI::App& checkpoint, Action& chosen);

}  // namespace weft::cli
