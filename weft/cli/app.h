// The `weft` program: parses the command line, runs one command, turns errors into exit codes.
#pragma once

namespace weft::cli {

int run(int argc, char** argv);

}  // namespace weft::cli
