// One blend of dataset.blend_per_split as a text, `[0.3,a,0.7,b]`, and the words in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::config {

// A word without the quotes around it.
std::string_view unquoted(std::string_view word);

// Nothing where the text is no list. An empty one, and null, have no words.
std::optional<std::vector<std::string>> blend_words(std::string_view written);

std::string blend_text(const std::vector<std::string>& words);

// `[[a,b],[c]]` as the texts of its lists; nothing where it is no list of lists.
std::optional<std::vector<std::string>> lists_in(std::string_view written);

}  // namespace weft::config
