#include "weft/train/guard/rehearsal.h"

#include "weft/derive/derived.h"
#include "weft/train/launch.h"
#include "weft/train/step.h"

namespace weft::train {
namespace {

tensor::Rehearsal rehearse_with(const rules::JudgedConfig& config,
                                int rank,
                                const schedule::RankPlan& plan,
                                kernels::DryRouting routing) {
  tensor::Rehearsal rehearsal;
  const comm::LaunchOptions world{.world = static_cast<int>(derive::layout_of(config).world),
                                  .rank = rank};
  comm::run_fake(world, [&](comm::Endpoint& endpoint) {
    Engine engine(config,
                  endpoint,
                  make_dry_device(config, routing),
                  {.weights = InitialWeights::Undefined, .plan = plan});
    const Batch batch = blank_batch(engine.share(), config->model.seq_length);
    run_once(engine, engine.training(), {.batch = batch}, exec::Tracing::Off);
    engine.program().drop_states();
    rehearsal = engine.pool().rehearsal();
  });
  return rehearsal;
}

}  // namespace

tensor::Rehearsal rehearse(const rules::JudgedConfig& config,
                           int rank,
                           const schedule::RankPlan& plan) {
  using enum kernels::DryRouting;
  tensor::Rehearsal rehearsal = rehearse_with(config, rank, plan, Even);
  note_varying(rehearsal.step, rehearse_with(config, rank, plan, Lopsided).step);
  return rehearsal;
}

}  // namespace weft::train
