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

// run_once for a graph without gradients.
StepTotals evaluate_once(Engine& engine, exec::Executor& executor, const StepInput& input) {
  Program& program = engine.program();
  const ForwardDrops drops(executor.graph());
  program.begin(input, &executor);
  executor.run(
      [&](const schedule::Node& node, tensor::Stream& stream) {
        program.run(node, stream);
        for (const ForwardDrops::State& state : drops.after(node)) program.drop_state(state);
      },
      exec::Tracing::Off);
  return program.read_totals();
}

// Repeats the step without a row budget if a rank exceeded it, with the bits of a run without a
// budget.
template <typename Run>
StepTotals run_with_room(const Run& run,
                         exec::Executor& executor,
                         exec::Executor& lifted,
                         const StepInput& input) {
  StepTotals totals = run(executor, input);
  if (!totals.overflowed) return totals;
  StepInput again = input;
  again.budget = config::RowBudget::Lifted;
  again.snapshot = nullptr;  // already taken; the state has not changed since
  totals = run(lifted, again);
  CHECK(!totals.overflowed, "rows exceed a budget that was lifted");
  totals.repeated = true;
  return totals;
}

}  // namespace

StepTotals train_step(Engine& engine, const StepInput& input, exec::Tracing tracing) {
  const auto run = [&](exec::Executor& executor, const StepInput& given) {
    return run_once(engine, executor, given, tracing);
  };
  return run_with_room(run, engine.training(), engine.lifted_training(), input);
}

StepTotals evaluate_step(Engine& engine, StepInput input) {
  engine.program().gather_weights();
  const auto run = [&](exec::Executor& executor, const StepInput& given) {
    return evaluate_once(engine, executor, given);
  };
  input.kind = schedule::StepKind::ForwardOnly;
  return run_with_room(run, engine.forward(), engine.lifted_forward(), input);
}

StepTotals forward_step(Engine& engine, const Batch& batch) {
  engine.program().gather_weights();
  const auto run = [&](exec::Executor& executor, const StepInput& given) {
    return run_once(engine, executor, given, exec::Tracing::Off);
  };
  const StepInput input{.batch = batch, .kind = schedule::StepKind::ForwardOnly};
  return run_with_room(run, engine.forward(), engine.lifted_forward(), input);
}

}  // namespace weft::train
