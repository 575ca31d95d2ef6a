#include "weft/train/step.h"

namespace weft::train {

StepTotals train_step(Engine& engine, const StepInput& input, exec::Tracing tracing) {
  Program& program = engine.program();
  program.begin(input);
  engine.training().run(
      [&](const schedule::Node& node, tensor::Stream& stream) { program.run(node, stream); },
      tracing);
  return program.totals();
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
