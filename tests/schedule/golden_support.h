// Golden schedules: text files in tests/golden/schedules, so that a change of order is a diff a
// reviewer can read.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace weft::schedule {

// Compares the text with the golden file of that name (comment lines of the file aside). A failure
// shows the lines that differ and where the new text was written, to be copied if it is meant.
::testing::AssertionResult matches_golden(const std::string& name, const std::string& text);

}  // namespace weft::schedule
