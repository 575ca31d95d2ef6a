// The `weft` program: parses the command line, runs one command, maps errors to exit codes.
#pragma once

namespace weft::cli {

int run(int argc, char** argv);

}  // namespace weft::cli
