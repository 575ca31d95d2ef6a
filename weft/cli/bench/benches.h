// Benches with a file of their own, and their common way: words, progress, document, exit code.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/terminal/progress.h"
#include "weft/report/document/document.h"
#include "weft/rules/judged_config.h"

namespace weft::cli {

// Words of a bench in one process; prints findings. ConfigError under a launcher, with `times`:
// "bench step times one process".
words::Resolution resolve_bench(const RunArguments& arguments, std::string_view times);
// ConfigError if the config has several ranks, with `times`: "bench step times one rank".
rules::JudgedConfig require_one_rank(const config::Config& config, std::string_view times);

// "[####    ] trip 3/8" on the line.
std::function<void(int done, int of)> progress_on(ProgressLine& line, std::string what);
// Words as they come, for measurements without a count.
std::function<void(const std::string& what)> notes_on(ProgressLine& line);

// Runs `bench`, prints its document and returns the exit code: kFailed if a bar is missed. A bench
// that throws measure::Stopped reports nothing.
int run_bench(Format format, const std::function<report::Document(ProgressLine& line)>& bench);
// Prints the document and returns the exit code of its bars.
int end_bench(Format format, const report::Document& document);
// Reports that a signal ended the bench; returns the exit code.
int stopped_bench(Format format);

void add_bench_overlap(CLI::App& bench, Action& chosen);
void add_bench_schedule(CLI::App& bench, Action& chosen);
void add_bench_check(CLI::App& bench, Action& chosen);
void add_bench_plan(CLI::App& bench, Action& chosen);
void add_bench_dispatch(CLI::App& bench, Action& chosen);
void add_bench_checkpoint(CLI::App& bench, Action& chosen);
void add_bench_gpu(CLI::App& bench, Action& chosen);
void add_bench_offload(CLI::App& bench, Action& chosen);
void add_bench_predict(CLI::App& bench, Action& chosen);
void add_bench_tune(CLI::App& bench, Action& chosen);

}  // namespace weft::cli
