#include "weft/train/step.h"

#include "weft/base/check.h"

namespace weft::train {
namespace {

StepTotals run(Engine& engine,
               exec::Executor& executor,
               const StepInput& input,
               exec::Tracing tracing) {
  Program& program = engine.program();
  program.begin(input);
  executor.run(
      [&](const schedule::Node& node, tensor::Stream& stream) { program.run(node, stream); },
      tracing);
  return program.read_totals();
}

// Where a rank got more rows than its budget, once more without it: with the bits of a run that
// never had one.
StepTotals run_with_room(Engine& engine,
                         exec::Executor& executor,
                         exec::Executor& lifted,
                         const StepInput& input,
                         exec::Tracing tracing) {
  StepTotals totals = run(engine, executor, input, tracing);
  if (!totals.overflowed) return totals;
  StepInput again = input;
  again.budget = config::RowBudget::Lifted;
  totals = run(engine, lifted, again, tracing);
  CHECK(!totals.overflowed, "rows exceed a budget that was lifted");
  totals.repeated = true;
  return totals;
}

}  // namespace

StepTotals train_step(Engine& engine, const StepInput& input, exec::Tracing tracing) {
  return train_step(engine, engine.training(), input, tracing);
}

StepTotals train_step(Engine& engine,
                      exec::Executor& executor,
                      const StepInput& input,
                      exec::Tracing tracing) {
  return run_with_room(engine, executor, engine.lifted_training(), input, tracing);
}

void communication_step(Engine& engine,
                        exec::Executor& executor,
                        const StepInput& input,
                        exec::Tracing tracing) {
  tensor::Stream& compute = engine.lanes()[schedule::Lane::Compute];
  StepInput repeated = input;
  repeated.routing = Routing::Repeated;
  compute.leave_out_work(true);
  run(engine, executor, repeated, tracing);
  compute.leave_out_work(false);
}

void refuse_repeated(const StepTotals& totals, const config::Config& config) {
  if (!totals.repeated) return;
  throw base::ConfigError(
      base::text("a rank got more rows than model.moe_expert_rank_capacity_factor = {} leaves room "
                 "for, and the "
                 "step ran twice: raise the factor to time a step",
                 config.model.moe_expert_rank_capacity_factor.value_or(0)));
}

StepTotals forward_step(Engine& engine, const Batch& batch, const std::atomic<bool>* stop) {
  return run_with_room(engine,
                       engine.forward(),
                       engine.lifted_forward(),
                       {.batch = batch, .stop = stop},
                       exec::Tracing::Off);
}

}  // namespace weft::train
