// Ranks tell each other a line of text: a folder's name, a finding.
#pragma once

#include <string>
#include <vector>

#include "weft/train/engine.h"

namespace weft::train {

// Every rank's text in rank order, on every rank. Texts are cut at 4095 bytes.
std::vector<std::string> gather_texts(Engine& engine, const std::string& text);

}  // namespace weft::train
