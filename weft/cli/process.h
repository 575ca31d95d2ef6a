// State of the process at its start.
#pragma once

namespace weft::cli {

// Call first. Replaces closed standard streams by /dev/null, so that no file of a run gets their
// number and their text. Ignores SIGPIPE and SIGXFSZ: a reader that left, or a file size limit,
// becomes a write error instead of ending the run.
void prepare_process();

// True if standard output is a pipe without a reader.
bool reader_has_left();

}  // namespace weft::cli
