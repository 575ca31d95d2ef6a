#include "weft/train/step.h"

#include "weft/base/check.h"

namespace weft::train {

StepTotals run_once(Engine& engine,
                    exec::Executor& executor,
                    const StepInput& input,
                    exec::Tracing tracing) {
  Program& program = engine.program();
  program.begin(input, &executor);
  executor.run(
      [&](const schedule::Node& node, tensor::Stream& stream) { program.run(node, stream); },
      tracing);
  return program.read_totals();
}

namespace {

// Where a rank got more rows than its budget, once more without it: with the bits of a run that
// never had one.
StepTotals run_with_room(Engine& engine,
                         exec::Executor& executor,
                         exec::Executor& lifted,
                         const StepInput& input,
                         exec::Tracing tracing) {
  StepTotals totals = run_once(engine, executor, input, tracing);
  if (!totals.overflowed) return totals;
  StepInput again = input;
  again.budget = config::RowBudget::Lifted;
  totals = run_once(engine, lifted, again, tracing);
  CHECK(!totals.overflowed, "rows exceed a budget that was lifted");
  totals.repeated = true;
  return totals;
}

}  // namespace

StepTotals train_step(Engine& engine, const StepInput& input, exec::Tracing tracing) {
  return run_with_room(engine, engine.training(), engine.lifted_training(), input, tracing);
}

StepTotals forward_step(Engine& engine, const Batch& batch, const std::atomic<bool>* stop) {
  engine.program().gather_weights();
  const StepInput input{.batch = batch, .stop = stop};
  return run_with_room(engine,
                       engine.forward(),
                       engine.lifted_forward(),
                       input,
                       exec::Tracing::Off);
}

}  // namespace weft::train
