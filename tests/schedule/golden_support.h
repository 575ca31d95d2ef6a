// Golden schedules: text files in tests/golden/schedules, so that a reviewer can read a change of
// order as a diff.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace weft::schedule {

// Compares the text with the golden file of that name, ignoring its comment lines. A failure shows
// the differing lines and the path of the new text, to be copied if the change is intended.
::testing::AssertionResult matches_golden(const std::string& name, const std::string& text);

}  // namespace weft::schedule
