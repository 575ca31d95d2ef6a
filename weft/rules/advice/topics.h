// Tables of advice, one per file, and a helper that makes notes.
#pragma once

#include "weft/rules/advice/advice.h"

namespace weft::rules {

// Note without id; the id is filled in later.
std::optional<Note> note(std::string key, std::string message, std::string fix);

std::span<const Advice> overlap_advice();
std::span<const Advice> memory_advice();
std::span<const Advice> platform_advice();
std::span<const Advice> layout_advice();

}  // namespace weft::rules
