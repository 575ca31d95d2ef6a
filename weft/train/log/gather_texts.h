// Exchange of one line of text between ranks: a folder's name, a finding.
#pragma once

#include <string>
#include <vector>

#include "weft/train/engine.h"

namespace weft::train {

// Every rank's text in rank order, on every rank. Longer texts are cut at 4095 bytes.
std::vector<std::string> gather_texts(Engine& engine, const std::string& text);

}  // namespace weft::train
