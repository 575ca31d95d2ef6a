// The process itself: what it expects of the one that started it.
#pragma once

namespace weft::cli {

// To be called first. Opens /dev/null in place of standard streams that are closed, so that no file
// of a run gets their number and their text. Ignores SIGPIPE and SIGXFSZ: a reader that left, or a
// limit on the size of files, is an error of the write that meets it and does not end a run.
void prepare_process();

// Whether standard output is a pipe that nobody reads any more.
bool reader_has_left();

}  // namespace weft::cli
