// Reader of a stored result, which is untrusted.
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/checkpoint/tensors/strict_json.h"
#include "weft/cli/perf/perf_against.h"
#include "weft/config/field.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using base::text;
using checkpoint::StrictJson;

constexpr std::size_t kMostBytes = std::size_t{16} << 20;
constexpr std::size_t kMostRuns = 1024;
constexpr std::size_t kLongestValue = 4096;
constexpr double kLongestStep = 1e12;  // ms
constexpr double kMostMemory = 1e18;
constexpr std::int64_t kMostSteps = 1'000'000'000;

std::string content_of(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) {
    throw base::ConfigError(
        text("--against '{}': no such file: give the result.json of an earlier weft perf",
             file.string()));
  }
  const std::uintmax_t bytes = fs::file_size(file, error);
  if (error || bytes > kMostBytes) {
    throw base::ConfigError(text("--against '{}': {} bytes, and a result.json has at most {}",
                                 file.string(),
                                 error ? 0 : bytes,
                                 kMostBytes));
  }
  return base::read_text(file, kMostBytes);
}

const StrictJson& object(const StrictJson& parent, const char* key, const std::string& file) {
  const StrictJson& value = checkpoint::member(parent, key, file);
  if (!value.is_object()) checkpoint::throw_wrong_value(value, key, file, "an object");
  return value;
}

const std::string& short_word(const StrictJson& value, const char* key, const std::string& file) {
  const std::string& word = checkpoint::as_word(value, key, file);
  if (word.size() > kLongestValue) {
    checkpoint::throw_wrong_value(value, key, file, text("at most {} characters", kLongestValue));
  }
  return word;
}

std::map<std::string, std::string> config_of(const StrictJson& run, const std::string& file) {
  std::map<std::string, std::string> all;
  for (const auto& [section, keys] : object(run, "config", file).items()) {
    if (!keys.is_object()) checkpoint::throw_wrong_value(keys, section, file, "an object");
    for (const auto& [name, value] : keys.items()) {
      all.emplace(text("{}.{}", section, name),
                  value.dump(-1, ' ', true, StrictJson::error_handler_t::replace));
    }
  }
  return all;
}

measure::Window window_of(const StrictJson& run, const std::string& file) {
  const StrictJson& window = object(run, "window", file);
  const auto step = [&](const char* key) {
    return checkpoint::as_integer(checkpoint::member(window, key, file), key, file, 0, kMostSteps);
  };
  return {.first = step("first_step"), .end = step("end_step")};
}

StoredRun run_of(const StrictJson& run, const std::string& file) {
  const auto number = [&](const char* key, double low, double high) {
    return checkpoint::as_number(checkpoint::member(run, key, file), key, file, {low, high});
  };
  return {.value = short_word(checkpoint::member(run, "value", file), "value", file),
          .step_ms = number("step_ms", 1e-9, kLongestStep),
          .spread_ms = number("spread_ms", 0, kLongestStep),
          .peak_bytes = number("peak_bytes", 0, kMostMemory),
          .window = window_of(run, file),
          .config = config_of(run, file)};
}

bool was_timed(const StrictJson& run, const std::string& file) {
  if (!run.is_object()) checkpoint::throw_wrong_value(run, "runs", file, "objects");
  const auto step = run.find("step_ms");
  return step == run.end() || !step->is_null();
}

void check_format(const StrictJson& json, const std::string& file) {
  const StrictJson& format = checkpoint::member(json, "format", file);
  if (checkpoint::as_word(format, "format", file) == kPerfFormat) return;
  checkpoint::throw_wrong_value(format, "format", file, text("\"{}\"", kPerfFormat));
}

}  // namespace

StoredResult read_stored(const fs::path& path) {
  const std::string file = path.string();
  const std::string content = content_of(path);
  const StrictJson json = [&] {
    try {
      return checkpoint::parse_object(content, file);
    } catch (const base::ConfigError& error) {
      throw base::ConfigError(
          text("--against {}: give the result.json of an earlier weft perf", error.what()));
    }
  }();
  check_format(json, file);
  StoredResult stored;
  for (const auto& [key, value] : object(json, "machine", file).items()) {
    stored.machine.emplace(key, value.dump(-1, ' ', true, StrictJson::error_handler_t::replace));
  }
  const StrictJson& runs = checkpoint::member(json, "runs", file);
  if (!runs.is_array() || runs.size() > kMostRuns) {
    checkpoint::throw_wrong_value(runs, "runs", file, text("a list of at most {}", kMostRuns));
  }
  for (const StrictJson& run : runs) {
    if (was_timed(run, file)) stored.runs.push_back(run_of(run, file));
  }
  if (stored.runs.empty()) {
    throw base::ConfigError(text("'{}' has no run that was timed: nothing to compare with", file));
  }
  return stored;
}

}  // namespace weft::cli
