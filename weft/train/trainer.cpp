#include "weft/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/checkpoint/new_folder.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/data/dataset.h"
#include "weft/derive/derived.h"
#include "weft/optim/learning_rate.h"
#include "weft/train/eval/evaluations.h"
#include "weft/train/guard/diagnose.h"
#include "weft/train/guard/faults.h"
#include "weft/train/guard/order_choice.h"
#include "weft/train/launch.h"
#include "weft/train/log/gather_texts.h"
#include "weft/train/log/gather_timelines.h"
#include "weft/train/log/model_statistics.h"
#include "weft/train/log/run_log.h"
#include "weft/train/log/trace_files.h"
#include "weft/train/places.h"
#include "weft/train/preparation.h"
#include "weft/train/saves/background_saves.h"
#include "weft/train/saves/checkpoints.h"
#include "weft/train/step.h"
#include "weft/train/weights.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Results of the ranks in this process.
struct Shared {
  const Clock::time_point started = Clock::now();
  std::mutex mutex;
  TrainResult result;
  std::vector<trace::Timeline> timelines;
  GatheredTimelines gathered;  // under a launcher
  fs::path run_dir;
  std::optional<Board> board;  // rank 0's
};

// Run of one rank.
class RankRun {
 public:
  RankRun(const TrainRequest& request, Engine& engine, const Preparation& ready, Shared& shared)
      : request_(request),
        config_(request.config),
        engine_(engine),
        dataset_(*ready.dataset),
        evaluation_(ready.evaluation),
        start_(ready.start),
        written_(ready.written),
        chosen_(ready.resumed),
        shared_(shared),
        evaluations_(engine, *ready.dataset, ready.evaluation, request.stop),
        order_(engine),
        progress_(engine.pool(), config_.rng.seed) {}

  void run() {
    if (is_rank_zero()) require_room();
    choose_again();
    is_finished_ = checkpoint_has_all_steps(config_, resumed());
    if (is_rank_zero()) require_places(config_, resumed(), written_, request_.overwrite);
    if (!config_.checkpoint.load.empty()) require_one_checkpoint(engine_, resumed());
    if (start_ && !resumed()) load_weights(engine_, *start_);
    if (resumed()) load_checkpoint(engine_, progress_, *resumed());
    first_step_ = saved_step_ = progress_.step();
    if (derive::saves_beside(config_)) beside_.emplace(engine_, progress_);
    if (!is_finished_) {
      open_run_folder();
      order_.rehearse(request_.config);
      if (start_ && !resumed()) tell_first(evaluations_.evaluate_first());
    }
    while (progress_.step() < config_.train.train_iters && !stopped_ && !left_) step();
    if (progress_.step() != saved_step_) keep_checkpoint();
    if (beside_) tell_ended(beside_->finish());
    const bool has_saved = progress_.step() != first_step_;  // it has removed old checkpoints then
    if (is_rank_zero() && !has_saved) remove_leftovers(config_, resumed(), request_.log);
    if (log_) tell_repeats();
    if (written_ && !(is_finished_ && !checkpoint::is_free_folder(config_.checkpoint.save_hf)))
      save();
    leave_results();
    if (traced_) leave_timeline();
  }

 private:
  bool is_rank_zero() const { return engine_.rank() == 0; }
  const std::optional<Resumption>& resumed() const {
    return chosen_again_ ? *chosen_again_ : chosen_;
  }
  // Searches the checkpoint again: the run that locked the folder before may have saved since.
  void choose_again() {
    const bool may_change = !config_.checkpoint.load.empty() && !config_.checkpoint.save.empty();
    if (may_change && !is_still_newest_choice(engine_, chosen_))
      chosen_again_ = find_resumption(config_);
  }

  void require_room() {  // before hours of training
    const fs::path folder = config_.checkpoint.save;
    if (folder.empty()) return;
    make_writable_folder(folder, "checkpoint.save");
    base::require_writable(folder / "room");  // a fixed file name could be a link
    saving_ = take_folder(folder, request_.log, request_.stop);
  }

  void open_run_folder() {
    if (is_rank_zero()) {
      log_.emplace(request_,
                   make_run_folder(config_, request_.name, first_step_, request_.overwrite),
                   first_step_,
                   progress_.not_finite());
    }
    run_dir_ = gather_texts(engine_, log_ ? log_->folder().string() : std::string()).front();
    if (!log_) return;
    RunStart start{.run_dir = run_dir_,
                   .step = first_step_,
                   .tokens = dataset_.tokens(),
                   .train_samples = dataset_.samples(data::Split::Train),
                   .eval_samples = dataset_.samples(data::Split::Eval),
                   .test_samples = dataset_.samples(data::Split::Test),
                   .data_remark = dataset_.remark()};
    for (const EvaluationData& set : evaluation_) {
      start.evaluation.push_back({set.name, set.dataset->samples(data::Split::Train)});
    }
    request_.start(start);
    log_->tell_kept();
    const std::string replaced = replacement_text(config_, resumed());
    if (!replaced.empty()) request_.log("warning: " + replaced);
    if (!resumed()) return;
    if (!resumed()->note.empty()) request_.log("warning: " + resumed()->note);
    request_.log(resumption_text(*resumed(), progress_));
  }

  void keep_checkpoint() {
    if (config_.checkpoint.save.empty()) return;
    saved_step_ = progress_.step();
    const SavePlace place(engine_, progress_);
    if (beside_) {
      tell_ended(beside_->finish());
      if (log_) request_.log(base::text("saving    '{}' beside the run", place.folder().string()));
      return beside_->begin();
    }
    const Clock::time_point start = Clock::now();
    const std::optional<std::string> failure = save_checkpoint(engine_, progress_);
    tell_ended(EndedSave{place.folder(), seconds_since(start), failure, place.is_written()});
  }

  // Logs the loss of the continued model before the first step.
  void tell_first(const std::string& text) const {
    if (log_ && !text.empty()) request_.log(text);
  }

  // Logs the result of rerun_state_machine.rerun_mode=report_stats.
  void tell_repeats() const {
    if (config_.rerun_state_machine.rerun_mode != config::RerunMode::ReportStats) return;
    request_.log(base::text("computed  twice: {}; {} gave other numbers the second time",
                            base::counted(progress_.step() - first_step_ + steps_again_, "step"),
                            differing_steps_ == 0 ? "none" : base::text("{}", differing_steps_)));
  }

  // Logs a failed checkpoint at once and again at the end; the run continues.
  void tell_ended(const std::optional<EndedSave>& end) {
    if (!log_ || !end) return;
    if (end->failure) {
      request_.log("warning: " + *end->failure);
      if (!end->is_written) {
        ++lost_checkpoints_;
        why_lost_ = *end->failure;
        return;
      }  // a later action failed, such as the removal of old checkpoints
    }
    last_checkpoint_ = end->folder;
    request_.log(
        base::text("saved     '{}': {} in {:.2f} s",
                   end->folder.string(),
                   base::human_bytes(static_cast<double>(checkpoint::bytes_in(end->folder))),
                   end->seconds));
  }

  // A non-finite step may end the run: the previous save must be complete then.
  void look_after_saves(const StepTotals& totals) {
    if (!beside_) return;
    tell_ended(beside_->look());
    if (!is_finite(totals)) tell_ended(beside_->finish());
  }

  void save() {
    const std::optional<std::string> failure =
        save_weights(engine_,
                     NewWeights{.folder = config_.checkpoint.save_hf,
                                .overwrite = request_.overwrite,
                                .text_from = continued_folder(config_, resumed())},
                     *written_);
    if (failure) failures_.push_back("checkpoint.save_hf: " + *failure);
    saved_ = !failure;
  }

  void step() {
    const Clock::time_point start = Clock::now();
    const std::int64_t step = progress_.step();
    const Batch batch = read_samples(engine_, dataset_, data::Split::Train, progress_.samples());
    const bool traced =
        config_.runtime.trace && step >= config_.train.train_iters - config_.runtime.trace_steps;
    const double rate = optim::learning_rate(config_, step - progress_.optimizer_begin());
    order_.begin_step();
    const Attempt attempt = attempt_step(engine_,
                                         progress_,
                                         {.batch = batch,
                                          .step = step,
                                          .learning_rate = rate,
                                          .optimizer_begin = progress_.optimizer_begin(),
                                          .stop = request_.stop,
                                          .leave_at = leave_at(),
                                          .snapshot = beside_ ? beside_->due() : nullptr},
                                         traced ? exec::Tracing::On : exec::Tracing::Off);
    const StepTotals& totals = attempt.totals;
    stopped_ = totals.stop_requested;
    if (log_ && !attempt.note.empty()) request_.log("warning: " + attempt.note);
    differing_steps_ += attempt.differs ? 1 : 0;
    look_after_saves(totals);
    if (!is_finite(totals)) {
      if (return_to_checkpoint()) return;
      progress_.count_not_finite();
      if (config_.rerun_state_machine.check_for_nan_in_loss) end_not_finite(step, batch, totals);
      if (log_) tell_skipped(step);
    }
    if (totals.repeated) progress_.count_repeated();
    progress_.advance(config_.train.global_batch_size);
    traced_ |= traced;
    const ModelStatistics statistics = model_statistics(engine_);
    const double seconds = seconds_since(start);
    (step == first_step_ ? first_seconds_ : warm_seconds_) += seconds;
    const std::optional<std::string> chosen = order_.end_step(seconds);
    StepRecord record = record_of(totals, rate, seconds);
    record.parameter_norm = statistics.parameter_norm;
    record.gradient_zeros = statistics.gradient_zeros;
    const bool ends = stopped_ || totals.time_is_up;
    if (log_) log_->tell(record, ends ? RunLog::Next::End : RunLog::Next::Step);
    if (log_ && totals.time_is_up) {
      request_.log("ends      here: the minutes of train.exit_duration_in_mins have passed");
    }
    if (log_ && chosen) request_.log(*chosen);
    // A stopping run evaluates nothing more.
    if (!stopped_) stopped_ = evaluations_.evaluate(record) == Evaluations::Ended::Stopped;
    if (log_) log_->keep(record, engine_.pool());
    const auto divides = [&](const std::optional<std::int64_t>& interval) {
      return interval && progress_.step() % *interval == 0;
    };
    if (divides(config_.checkpoint.save_interval)) keep_checkpoint();
    left_ = totals.time_is_up || divides(config_.train.exit_interval);
  }

  // Deadline of train.exit_duration_in_mins by the clock of rank 0, which informs the others.
  std::optional<Clock::time_point> leave_at() const {
    const std::optional<double>& minutes = config_.train.exit_duration_in_mins;
    if (!minutes || !is_rank_zero()) return std::nullopt;
    const std::chrono::duration<double> allowed(60 * *minutes);
    return shared_.started + std::chrono::duration_cast<Clock::duration>(allowed);
  }

  // False if there is no checkpoint, or the limit of rollbacks is reached.
  bool return_to_checkpoint() {
    if (returns_ == config_.runtime.rollbacks) return false;
    const bool went_on = resumed() && resumed()->loads != Loads::Weights;
    const fs::path last = last_checkpoint_.value_or(went_on ? resumed()->folder : fs::path());
    const fs::path folder = gather_texts(engine_, last.string()).front();
    if (folder.empty()) return false;
    ++returns_;
    const std::int64_t failed = progress_.step() + 1;
    const bool is_first = went_on && folder == resumed()->folder;
    go_back(engine_, progress_, is_first ? *resumed() : Resumption{.folder = folder});
    saved_step_ = progress_.step();
    steps_again_ += failed - progress_.step();
    if (!log_) return true;
    log_->go_back(progress_.step(), progress_.not_finite());
    request_.log(base::text(
        "warning: training step {} is not finite: back to '{}', and on behind its data ({} of {})",
        failed,
        folder.string(),
        returns_,
        config_.runtime.rollbacks));
    return true;
  }

  // The rank nearest to the cause throws; the others wait for its failure.
  void end_not_finite(std::int64_t step, const Batch& batch, const StepTotals& totals) {
    const NotFinite finding = find_not_finite(engine_, {.batch = batch, .step = step}, totals);
    if (finding.rank == engine_.rank()) {
      const std::string what = has_injected_error(config_, progress_)
                                   ? "made to fail (rerun_state_machine.error_injection_rate)"
                                   : finding.what;
      throw base::SystemError(base::text("training step {}: {}", step + 1, what));
    }
    tensor::Stream& stream = engine_.lanes()[schedule::Lane::Compute];
    engine_.groups().world->barrier(stream);
    stream.synchronize();
  }

  void tell_skipped(std::int64_t step) const {
    request_.log(
        base::text("warning: training step {} is not finite and is skipped ({} so far): it changed "
                   "nothing",
                   step + 1,
                   progress_.not_finite()));
  }

  StepRecord record_of(const StepTotals& totals, double rate, double seconds) {
    const auto tokens = static_cast<double>(derive::tokens_per_step(config_));
    StepRecord record{.iteration = progress_.step(),
                      .iterations = config_.train.train_iters,
                      .consumed_samples = progress_.samples(),
                      .global_batch_size = config_.train.global_batch_size,
                      .elapsed_ms = seconds * 1e3,
                      .tokens_per_second = tokens / seconds,
                      .tflops_per_rank = derive::flops_per_token(config_.model) * tokens / seconds /
                                         engine_.groups().grid.world() / 1e12,
                      .learning_rate = rate,
                      .loss = totals.loss,
                      .gradient_norm = totals.gradient_norm,
                      .not_finite = progress_.not_finite(),
                      .skipped = !is_finite(totals),
                      .pretended = config::is_pretended(config_.runtime.backend)};
    if (dataset_.tokens()) {
      record.epoch = static_cast<double>(record.consumed_samples) /
                     static_cast<double>(dataset_.samples(data::Split::Train));
    }
    if (config_.model.moe_expert_rank_capacity_factor) record.repeated = progress_.repeated();
    add_router(totals, record);
    if (record.iteration == first_step_ + 1) first_loss_ = record.loss;
    last_loss_ = record.loss;
    last_loads_ = record.expert_loads;
    last_repeated_ = record.repeated;
    return record;
  }

  // Adds the losses and loads of the routers.
  void add_router(const StepTotals& totals, StepRecord& record) const {
    using enum config::LoadBalancing;
    const config::ModelConfig& model = config_.model;
    const RouterLosses& losses = totals.router_losses;
    if (model.aux_loss_coeff(AuxLoss) != 0) record.balance_loss = losses.batch;
    if (model.aux_loss_coeff(SeqAuxLoss) != 0) record.sequence_balance_loss = losses.sequence;
    if (model.aux_loss_coeff(GlobalAuxLoss) != 0) record.global_balance_loss = losses.global;
    if (model.moe_z_loss_coeff != 0) record.z_loss = losses.z;
    record.expert_loads = totals.expert_loads;
  }

  void leave_results() {
    const std::lock_guard lock(shared_.mutex);
    shared_.run_dir = run_dir_;
    if (!is_rank_zero()) return;
    if (const std::string why = log_ ? log_->failure() : ""; !why.empty()) failures_.push_back(why);
    if (lost_checkpoints_ > 0) {
      failures_.push_back(base::text("checkpoint.save: {} not written, the last of them {}",
                                     base::counted(lost_checkpoints_, "checkpoint"),
                                     why_lost_));
    }
    shared_.result = {.steps = progress_.step(),
                      .first_loss = first_loss_,
                      .final_loss = last_loss_,
                      .eval_loss_before = evaluations_.first_loss(),
                      .eval_loss = evaluations_.eval_loss(),
                      .eval_losses = evaluations_.eval_losses(),
                      .test_loss = evaluations_.test_loss(),
                      .expert_loads = last_loads_,
                      .repeated = last_repeated_,
                      .not_finite = progress_.not_finite(),
                      .tokens_per_second = tokens_per_second(),
                      .run_dir = run_dir_,
                      .interrupted = stopped_,
                      .failures = failures_,
                      .saved = saved_,
                      .first_step = first_step_,
                      .checkpoint = last_checkpoint_,
                      .is_finished = is_finished_,
                      .is_rank_zero = true};
    if (is_finished_) shared_.result.checkpoint = resumed()->folder;
    for (int tag = 0; tag < tensor::kTags; ++tag) {
      shared_.result.peak_bytes[static_cast<std::size_t>(tag)] =
          engine_.pool().use(static_cast<tensor::Tag>(tag)).peak;
    }
    shared_.result.peak_total_bytes = engine_.pool().total().peak;
    shared_.result.reserved_bytes = engine_.pool().most_reserved();
    shared_.result.snapshot_bytes = beside_ ? beside_->bytes() : 0;
    if (log_) shared_.board = log_->take_board();
  }

  double tokens_per_second() const {
    const auto steps = static_cast<double>(progress_.step() - first_step_ + steps_again_);
    const auto tokens = static_cast<double>(derive::tokens_per_step(config_));
    if (steps == 0) return 0;
    return steps > 1 ? tokens * (steps - 1) / warm_seconds_ : tokens / first_seconds_;
  }

  void leave_timeline() {
    trace::Timeline own{.rank = engine_.rank(),
                        .label = engine_.label(),
                        .spans = engine_.training().take_spans()};
    if (&engine_.lifted_training() != &engine_.training()) {
      std::ranges::move(engine_.lifted_training().take_spans(), std::back_inserter(own.spans));
    }
    GatheredTimelines gathered;
    if (config::are_processes(config_.runtime.backend)) {
      gathered = gather_timelines(engine_, own);
    }
    const std::lock_guard lock(shared_.mutex);
    shared_.timelines.push_back(std::move(own));
    shared_.gathered = std::move(gathered);
  }

  const TrainRequest& request_;
  const config::Config& config_;
  Engine& engine_;
  const data::Dataset& dataset_;
  const std::vector<EvaluationData>& evaluation_;
  const std::optional<checkpoint::HuggingFaceModel>& start_;
  const std::optional<checkpoint::HuggingFaceConfig>& written_;  // config.json for save_hf
  const std::optional<Resumption>& chosen_;                // found before the run locked its folder
  std::optional<std::optional<Resumption>> chosen_again_;  // set if another run saved meanwhile
  Shared& shared_;
  Evaluations evaluations_;
  OrderChoice order_;
  Progress progress_;
  fs::path run_dir_;
  std::optional<RunLog> log_;  // rank 0's
  bool is_finished_ = false, stopped_ = false, traced_ = false, saved_ = false, left_ = false;
  std::int64_t returns_ = 0, steps_again_ = 0;  // returns to a checkpoint, and steps lost by them
  std::int64_t first_step_ = 0, saved_step_ = 0, lost_checkpoints_ = 0, differing_steps_ = 0;
  std::optional<base::Descriptor> saving_;  // rank 0's lock on checkpoint.save; outlives its saves
  std::optional<BackgroundSaves> beside_;
  std::optional<fs::path> last_checkpoint_;
  std::string why_lost_;
  std::vector<std::string> failures_;
  std::optional<std::int64_t> last_repeated_;
  double first_seconds_ = 0, warm_seconds_ = 0, first_loss_ = 0, last_loss_ = 0;
  std::vector<ExpertLoads> last_loads_;
};

// Under a launcher the process of rank 0 writes the files of all ranks. Exception: with
// unsynchronized clocks each rank writes its own trace.
void write_trace_files(Shared& shared, config::CommBackend backend) {
  std::ranges::sort(shared.timelines, {}, &trace::Timeline::rank);
  TrainResult& result = shared.result;
  if (!config::are_processes(backend)) {
    result.trace = write_trace(shared.run_dir, shared.timelines);
    result.exposure = write_exposure(shared.run_dir, shared.timelines, trace::Clocks::Shared);
    result.timelines = std::move(shared.timelines);
    return;
  }
  const auto& [timelines, clocks] = shared.gathered;
  if (clocks == trace::Clocks::Separate) {
    result.trace = write_own_trace(shared.run_dir, shared.timelines.front());
  }
  if (!result.is_rank_zero) return;
  if (clocks == trace::Clocks::Shared) result.trace = write_trace(shared.run_dir, timelines);
  result.exposure = write_exposure(shared.run_dir, timelines, clocks);
}

void finish_board(Shared& shared) {
  if (!shared.board) return;
  TrainResult& result = shared.result;
  if (result.exposure) shared.board->keep(*result.exposure, result.steps);
  if (const std::string lost = shared.board->failure(); !lost.empty()) {
    result.failures.push_back(lost);
  }
}

}  // namespace

TrainResult train(const TrainRequest& request) {
  const rules::JudgedConfig& config = request.config;
  Shared shared;
  const Preparation ready = prepare(config);
  require_places_at_start(config, ready.resumed, ready.written, request.overwrite);
  SharedPlans plans(config);
  launch(config, request.process, [&](comm::Endpoint& endpoint) {
    Engine engine(config, endpoint, plans);
    comm::poison_on_error(endpoint, [&] { RankRun(request, engine, ready, shared).run(); });
  });
  try {
    if (!shared.timelines.empty()) write_trace_files(shared, config->runtime.backend);
  } catch (const base::SystemError& error) {
    shared.result.failures.push_back(error.what());
  }
  finish_board(shared);
  return shared.result;
}

}  // namespace weft::train
