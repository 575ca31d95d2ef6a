#include "weft/train/step.h"

namespace weft::train {

StepTotals train_step(Engine& engine, const StepInput& input, exec::Tracing tracing) {
  return train_step(engine, engine.training(), input, tracing);
}

StepTotals train_step(Engine& engine,
                      exec::Executor& executor,
                      const StepInput& input,
                      exec::Tracing tracing) {
  Program& program = engine.program();
  program.begin(input);
  executor.run(
      [&](const schedule::Node& node, tensor::Stream& stream) { program.run(node, stream); },
      tracing);
  return program.totals();
}

void communication_step(Engine& engine,
                        exec::Executor& executor,
                        const StepInput& input,
                        exec::Tracing tracing) {
  tensor::Stream& compute = engine.lanes()[schedule::Lane::Compute];
  StepInput repeated = input;
  repeated.routing = Routing::Repeated;
  compute.leave_out_work(true);
  train_step(engine, executor, repeated, tracing);
  compute.leave_out_work(false);
}

StepTotals forward_pass(Engine& engine, const Batch& batch) {
  Program& program = engine.program();
  program.begin({.batch = batch});
  engine.forward().run(
      [&](const schedule::Node& node, tensor::Stream& stream) { program.run(node, stream); },
      exec::Tracing::Off);
  return program.read_totals();
}

}  // namespace weft::train
