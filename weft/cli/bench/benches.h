// Benches with a file of their own.
#pragma once

#include "weft/cli/command.h"
#include "weft/cli/output.h"

namespace weft::cli {

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
