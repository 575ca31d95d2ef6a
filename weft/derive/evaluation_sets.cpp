#include "weft/derive/evaluation_sets.h"

#include <filesystem>

namespace weft::derive {
namespace {

std::string last_part(const std::filesystem::path& path) {
  const std::filesystem::path whole = path.lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

}  // namespace

std::size_t path_begin(std::string_view entry) {
  const std::size_t sign = entry.find('=');
  return sign == std::string_view::npos || entry.find('/') < sign ? 0 : sign + 1;
}

std::vector<EvaluationSet> evaluation_sets_of(const config::DatasetConfig& dataset) {
  std::vector<EvaluationSet> sets;
  for (const std::string& entry : dataset.valid_data_path) {
    const std::size_t begin = path_begin(entry);
    const std::string path = entry.substr(begin);
    sets.push_back(
        {.name = begin == 0 ? last_part(path) : entry.substr(0, begin - 1), .path = path});
  }
  return sets;
}

}  // namespace weft::derive
