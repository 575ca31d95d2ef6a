#include "weft/report/starts.h"

#include <span>

#include "weft/base/files/file.h"
#include "weft/base/files/line_file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::report {
namespace {

namespace fs = std::filesystem;
using base::text;

constexpr const char* kStarts = "starts.jsonl";
// Longest part of a file that is read, from its end.
constexpr std::uint64_t kMostRead = 4u << 20;

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

// Last complete lines of a file.
std::vector<std::string> last_lines(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  const base::InputFile file(path);
  const std::uint64_t begin = file.size() > kMostRead ? file.size() - kMostRead : 0;
  std::string content(file.size() - begin, '\0');
  file.read(begin, std::as_writable_bytes(std::span(content)));
  std::vector<std::string> lines = base::split(content, '\n');
  if (begin > 0) lines.erase(lines.begin());
  return lines;
}

bool ends_in_a_line(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path) == 0) return true;
  const base::InputFile file(path);
  char last = 0;
  file.read(file.size() - 1, std::as_writable_bytes(std::span(&last, 1)));
  return last == '\n';
}

// True if a line begins a run, so that earlier lines belong to others.
bool is_beginning(const base::SortedJson& json) {
  const auto step = json.find("step");
  return step != json.end() && step->is_number_unsigned() && step->get<std::uint64_t>() == 0;
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
  const std::string line = json.dump(-1, ' ', false, base::Json::error_handler_t::replace);
  const bool is_cut = !ends_in_a_line(file);
  base::LineFile lines(file, text("'{}' is being written by another run", file.string()));
  lines.append(is_cut ? '\n' + line : line);
}

std::vector<Start> read_starts(const fs::path& run_folder) {
  std::vector<Start> starts;
  for (const std::string& line : last_lines(run_folder / kStarts)) {
    const base::SortedJson json = base::try_parse_sorted_json(line);
    if (!json.is_object()) continue;
    if (is_beginning(json)) starts.clear();
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
