#include "weft/report/starts.h"

#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::report {
namespace {

namespace fs = std::filesystem;
using base::text;

constexpr const char* kStarts = "starts.jsonl";
constexpr std::size_t kLargestStarts = 4u << 20;

std::string words_at(const base::SortedJson& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? base::shown(found->get<std::string>()) : "";
}

std::int64_t count_at(const base::SortedJson& json, const char* key) {
  const auto found = json.find(key);
  const bool is_count = found != json.end() && found->is_number_unsigned() &&
                        found->get<std::uint64_t>() < std::uint64_t{1} << 62;
  return is_count ? found->get<std::int64_t>() : 0;
}

std::string content_of(const fs::path& file) {
  std::error_code error;
  const bool is_small = fs::is_regular_file(file, error) && fs::file_size(file) <= kLargestStarts;
  return is_small ? base::read_text(file, kLargestStarts) : "";
}

}  // namespace

void keep_start(const fs::path& run_folder, const Start& start) {
  const fs::path file = run_folder / kStarts;
  const base::Json json{{"step", start.step},
                        {"time", start.time},
                        {"version", start.version},
                        {"build", start.build},
                        {"cpu", start.cpu},
                        {"cores", start.cores},
                        {"memory_bytes", start.memory_bytes},
                        {"gpu", start.gpu}};
  const std::string before = start.step == 0 ? "" : content_of(file);
  base::write_whole(
      file,
      before + json.dump(-1, ' ', false, base::Json::error_handler_t::replace) + '\n');
}

std::vector<Start> read_starts(const fs::path& run_folder) {
  std::vector<Start> starts;
  for (const std::string& line : base::split(content_of(run_folder / kStarts), '\n')) {
    const base::SortedJson json = base::try_parse_sorted_json(line);
    if (!json.is_object()) continue;
    starts.push_back({.step = count_at(json, "step"),
                      .time = words_at(json, "time"),
                      .version = words_at(json, "version"),
                      .build = words_at(json, "build"),
                      .cpu = words_at(json, "cpu"),
                      .cores = count_at(json, "cores"),
                      .memory_bytes = count_at(json, "memory_bytes"),
                      .gpu = words_at(json, "gpu")});
  }
  return starts;
}

std::string machine_text(const Start& start) {
  std::vector<std::string> parts;
  if (!start.cpu.empty()) parts.push_back(start.cpu);
  if (start.cores > 0) parts.push_back(base::counted(start.cores, "core"));
  if (start.memory_bytes > 0) {
    parts.push_back(base::human_bytes(static_cast<double>(start.memory_bytes)));
  }
  std::string all = text("{}", fmt::join(parts, ", "));
  if (!start.gpu.empty()) all += (all.empty() ? "" : "; ") + start.gpu;
  return all;
}

}  // namespace weft::report
