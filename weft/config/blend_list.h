// Text form of one blend of dataset.blend_per_split, `[0.3,a,0.7,b]`, and its words.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::config {

// Removes the quotes around a word.
std::string_view unquoted(std::string_view word);

// Words of a list; nullopt: the text is no list. An empty list and null have no words.
std::optional<std::vector<std::string>> blend_words(std::string_view written);

std::string blend_text(const std::vector<std::string>& words);

// Splits `[[a,b],[c]]` into the texts of its lists; nullopt: no list of lists.
std::optional<std::vector<std::string>> lists_in(std::string_view written);

}  // namespace weft::config
