// HOW DO ROWS REACH THEIR EXPERTS? A dispatcher moves the tokens of a slice (a micro-batch, or a
// part) to the ranks that own their experts. It moves the experts' outputs back.
//
// Local work and communication alternate:
//
//   lay_out   local, with the routing   rows that travel; this rank's row counts
//   counts    communication lane        exchange of all ranks' counts
//   plan      host, or the same lane    rows per destination: by the host, which makes room for
//                                       them, or under a budget by the device
//   permute   local                     rows into wire order
//   dispatch  communication             rows, probabilities and choices to the experts' ranks
//   arrange   local, in experts         rows by expert, if they arrive in another order
//   restore   local, in experts         outputs into wire order, if they leave in another order
//   combine   communication             outputs travel back
//   merge     local                     a token's outputs are added to the residual stream
//
// Only dispatch and combine move bulk bytes. The backward mirrors them: merge, combine, arrange,
// restore, dispatch, permute. State is a value per slice, layer and micro-batch, because several
// micro-batches are in flight; a dispatcher itself is stateless.
//
// With expert tensor parallelism, a token travels to all ranks that share its expert: a dispatcher
// treats every shard as an expert (config::ExpertGrid). Choices are copied for each shard before
// lay_out. The shards' outputs are added with a token's outputs, and the gradients of a
// probability's copies are added after permute's.
//
// Suffixes: T tokens, k experts per token (K with their shards), R rows on the wire, X rows for the
// experts of this rank, G ranks of the group, N numbers that a rank sends to the others.
#pragma once

#include <memory>

#include "weft/comm/communicator.h"
#include "weft/model/context.h"
#include "weft/model/moe/exchange.h"

namespace weft::model {

// Tokens that travel together, with the router's output.
struct Routed {
  Tensor x_TD;  // rows that travel: the routing norm's output
  Tensor p_Tk, experts_Tk;
  std::int64_t most_tokens = 0;  // tokens per rank of the group, at most
};

// Assigned by permute's input gradient.
struct RoutedGradient {
  Tensor dx_TD, dp_Tk;
};

// Input of the experts: rows sorted by expert, rows_L of each (int64).
struct ExpertRows {
  Tensor x_XD, p_X, rows_L;
};

// Payload of one direction.
struct Cargo {
  Tensor rows_RD, p, choices_Rk;  // p: (R) or (R, k); choices: only if the receiver sorts
};

// One hop: a copy of each token for each group of ranks with its experts, sent over one
// communicator.
struct Hop {
  Tensor row_Tm, token_R, choice_Rk;  // see kernels::sort_by_group
  Tensor send, receive;               // int64: rows to and from each member
  // host copy; empty if the host never learns the counts
  std::vector<std::int64_t> send_rows, receive_rows;
  std::int64_t room = 0;  // rows that may arrive, at most
};

// Choices of a token, one per shard of its experts (see kernels::choose_shards).
struct ShardChoice {
  Tensor p_TK, experts_TK;  // until permute
  Tensor copy_Sn;
};

struct DispatchState {
  ShardChoice shards;  // undefined if every expert is on one rank
  std::int64_t most_tokens = 0;
  Tensor counts_GN;                // alltoall: counts of all ranks; int64, host-visible
  Tensor row_Tk, slot_R, token_R;  // alltoall: see kernels::sort_by_expert
  Exchange plan;                   // alltoall: row counts on the host
  Hop across, within;              // flex
  Tensor splits;                   // flex without host counts: see kernels::plan_hops
  std::int64_t arriving = 0;       // X, or the room for it
  std::int64_t rows_each = 0;      // padded: rows of each expert; else 0
  Cargo sent, received;
  Tensor again_RD;           // rows resent for a recomputation
  Tensor place_Rk, token_X;  // for sorting received rows: see kernels::sort_by_expert
  // outputs of the experts: at the experts, and back at their tokens
  Tensor output_RD, returned_RD;
  Tensor dreturned_RD, doutput_RD;
  Cargo dreceived, dsent;  // gradients of `received` and `sent`
};

class Dispatcher {
 public:
  explicit Dispatcher(const config::ExpertGrid& grid) : grid_(grid) {}
  virtual ~Dispatcher() = default;

  // Counts that a rank sends to the others per slice; 0: no counts are exchanged.
  virtual std::int64_t counts() const = 0;

  void lay_out(const Context&, DispatchState&, const Routed&, const Tensor& counts_N) const;

  // Plans rows from the opened counts of all ranks: on the host, which may read the counts, or on
  // the device if the host never learns them. The device adds 1 to overflow_1 (fp64) if a rank
  // would exceed its row budget. No rows travel then, and the results of this step are invalid.
  virtual bool host_learns() const { return true; }
  virtual void plan_on_host(DispatchState&, const Tensor& shown_GN) const = 0;
  virtual void plan_on_device(const Context&,
                              DispatchState&,
                              const Tensor& counts_GN,
                              const Tensor& overflow_1) const;

  void permute_forward(const Context&, DispatchState&, const Routed&) const;
  virtual void dispatch_forward(const Context&, DispatchState&) const = 0;
  virtual ExpertRows arrange_forward(const Context&, DispatchState&) const = 0;
  virtual void restore_forward(const Context&, DispatchState&, const Tensor& output_XD) const = 0;
  virtual void combine_forward(const Context&, DispatchState&) const = 0;
  // y = h + the sum of each token's expert outputs.
  virtual void merge_forward(const Context&,
                             DispatchState&,
                             const Tensor& y_TD,
                             const Tensor& h_TD) const = 0;

  // Recomputes the experts' input: rows alone travel, on the routes laid out by the forward.
  void permute_again(const Context&, DispatchState&, const Tensor& x_TD) const;
  void dispatch_again(const Context&, DispatchState&) const;
  Tensor arrange_again(const Context&, DispatchState&) const;
  // All three in one, if no row leaves its rank.
  bool moves_rows() const { return grid_.ranks > 1; }
  Tensor rows_again(const Context&, const DispatchState&, const Tensor& x_TD) const;

  void merge_dgrad(const Context&, DispatchState&, const Tensor& dy_TD) const;
  void combine_dgrad(const Context&, DispatchState&) const;
  // Gradient of the experts' outputs, by expert.
  Tensor arrange_dgrad(const Context&, DispatchState&) const;
  virtual void restore_dgrad(const Context&,
                             DispatchState&,
                             const Tensor& dx_XD,
                             const Tensor& dp_X) const = 0;
  virtual void dispatch_dgrad(const Context&, DispatchState&) const = 0;
  // Drops the state.
  void permute_dgrad(const Context&, DispatchState&, const RoutedGradient&) const;

 protected:
  const config::ExpertGrid& grid() const { return grid_; }

 private:
  // Moves rows to the experts: into wire order, to the experts' ranks, and there by expert.
  virtual Tensor wire_rows(const Context&, const DispatchState&, const Tensor& x_TD) const = 0;
  virtual Tensor rows_at_experts(const Context&, const DispatchState&, const Tensor&) const = 0;
  virtual Tensor rows_by_expert(const Context&, const DispatchState&, const Tensor&) const = 0;

  // lay_out, permute and its gradient, with choices and probabilities copied per shard.
  virtual void lay_out_rows(const Context&,
                            DispatchState&,
                            const Routed&,
                            const Tensor& counts_N) const = 0;
  virtual void permute_rows(const Context&, DispatchState&, const Routed&) const = 0;
  virtual void permute_rows_dgrad(const Context&, DispatchState&, const RoutedGradient&) const = 0;

  const config::ExpertGrid grid_;
};

// y[t] = h[t] + the sum of the rows that rows_Tm[t] names (-1: none), for merge_forward. With
// model.moe_permute_fusion in one pass, without rounding the sum before adding h.
void merge_rows(const Context&,
                const Tensor& y_TD,
                const Tensor& h_TD,
                const Tensor& returned_RD,
                const Tensor& rows_Tm);

// Groups that the rows of a rank's experts travel in.
struct EpGroups {
  // all ranks with experts of a layer; ranks that share an expert are neighbours (tp_ep)
  comm::Communicator& ep;
  // For two hops: the ranks at this rank's position in each machine, and the ranks of this rank's
  // machine. nullptr: one hop.
  comm::Communicator* across = nullptr;
  comm::Communicator* within = nullptr;
};

// Makes the dispatcher of model.moe_token_dispatcher_type. flex uses two hops if `groups` has both
// groups. RowBudget::Lifted: room for every row that arrives.
std::unique_ptr<Dispatcher> make_dispatcher(const config::ModelConfig& config,
                                            const EpGroups& groups,
                                            config::RowBudget budget);

}  // namespace weft::model
