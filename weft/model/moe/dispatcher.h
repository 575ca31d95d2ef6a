// HOW DO ROWS REACH THEIR EXPERTS? A dispatcher moves the tokens of a slice (of a micro-batch's
// tokens, or all of them) to the ranks that own their experts, and the experts' outputs back.
//
// Local work and communication alternate:
//
//   lay_out   local, with the routing   which rows travel; this rank's row counts
//   counts    communication lane        what every rank counted
//   plan      host, or the same lane    from that, how many rows go where: by the host, which makes
//                                       room for them, or under a budget by the device
//   permute   local                     rows into wire order
//   dispatch  communication             rows, probabilities and choices to the experts' ranks
//   arrange   local, in experts         rows by expert, where they do not arrive so
//   restore   local, in experts         outputs back into wire order, where they do not leave so
//   combine   communication             outputs travel back
//   merge     local                     a token's outputs are added to the residual stream
//
// Only dispatch and combine move bulk bytes. The backward mirrors them: merge, combine, arrange,
// restore, dispatch, permute. The state is a value per slice, layer and micro-batch, because
// several micro-batches are in flight; a dispatcher itself has none.
//
// Where ranks share experts (expert tensor parallelism) a token travels to all that share one: a
// dispatcher sees every shard as an expert of its own (config::ExpertGrid). The choices are fanned
// out to the shards before lay_out; what comes back from them is added up where a token's outputs
// are, and the gradients of a probability's copies are added up after permute's.
//
// Suffixes: T tokens, k experts a token (K with their shards), R rows on the wire, X rows for the
// experts of this rank, G ranks of the group, N numbers a rank tells the others.
#pragma once

#include <memory>

#include "weft/comm/communicator.h"
#include "weft/model/context.h"
#include "weft/model/moe/exchange.h"

namespace weft::model {

// The tokens that travel together, as the router leaves them.
struct Routed {
  Tensor x_TD;  // what travels: the routing norm's output
  Tensor p_Tk, experts_Tk;
  std::int64_t most_tokens = 0;  // that any rank of the group brings
};

// To be assigned by permute's input gradient.
struct RoutedGradient {
  Tensor dx_TD, dp_Tk;
};

// What the experts work on: rows sorted by expert, rows_L of each (int64).
struct ExpertRows {
  Tensor x_XD, p_X, rows_L;
};

// What travels, in one direction.
struct Cargo {
  Tensor rows_RD, p, choices_Rk;  // p (R) or (R, k); choices only where the receiver sorts
};

// One copy of a token for each group of ranks it has experts in, sent over one communicator.
struct Hop {
  Tensor row_Tm, token_R, choice_Rk;                  // see kernels::sort_by_group
  Tensor send, receive;                               // int64: rows to and from each member
  std::vector<std::int64_t> send_rows, receive_rows;  // the same; empty where the host never learns
  std::int64_t room = 0;                              // rows that may arrive
};

// A token's choices, one for each shard of the experts (see kernels::choose_shards).
struct ShardChoice {
  Tensor p_TK, experts_TK;  // until permute
  Tensor copy_Sn;
};

struct DispatchState {
  ShardChoice shards;  // undefined where every expert is on one rank
  std::int64_t most_tokens = 0;
  Tensor counts_GN;                // alltoall: what every rank counted; int64, host-visible
  Tensor row_Tk, slot_R, token_R;  // alltoall: see kernels::sort_by_expert
  Exchange plan;                   // alltoall: what the host learned
  Hop across, within;              // flex
  Tensor splits;                   // flex, where the host never learns: see kernels::plan_hops
  std::int64_t arriving = 0;       // X, or room for as many
  std::int64_t rows_each = 0;      // where experts are padded: of each; else 0
  Cargo sent, received;
  Tensor again_RD;                // rows that travel once more, for a recomputation
  Tensor place_Rk, token_X;       // where received rows are sorted: see kernels::sort_by_expert
  Tensor output_RD, returned_RD;  // the experts' outputs: here, and back home
  Tensor dreturned_RD, doutput_RD;
  Cargo dreceived, dsent;  // gradients of what travelled
};

class Dispatcher {
 public:
  explicit Dispatcher(const config::ExpertGrid& grid) : grid_(grid) {}
  virtual ~Dispatcher() = default;

  // Numbers a rank tells the others of each slice; 0: none need be told.
  virtual std::int64_t counts() const = 0;

  void lay_out(const Context&, DispatchState&, const Routed&, const Tensor& counts_N) const;

  // From the counts of all ranks, opened, where rows go: planned by the host, of counts that it may
  // read, or by the device, where the host never learns them. The device adds 1 to overflow_1
  // (fp64) where a rank would get more rows than its budget; nothing travels then, and what this
  // step computes is worth nothing.
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

  // What the experts read, once more: the rows alone, on the ways that the forward has laid out.
  void permute_again(const Context&, DispatchState&, const Tensor& x_TD) const;
  void dispatch_again(const Context&, DispatchState&) const;
  Tensor arrange_again(const Context&, DispatchState&) const;
  // The three in one, where no row leaves its rank.
  bool moves_rows() const { return grid_.ranks > 1; }
  Tensor rows_again(const Context&, const DispatchState&, const Tensor& x_TD) const;

  void merge_dgrad(const Context&, DispatchState&, const Tensor& dy_TD) const;
  void combine_dgrad(const Context&, DispatchState&) const;
  // The gradient of the experts' outputs, by expert.
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
  // Rows of this rank's tokens, for its experts' ranks: into wire order, to these ranks, and there
  // by expert.
  virtual Tensor wire_rows(const Context&, const DispatchState&, const Tensor& x_TD) const = 0;
  virtual Tensor rows_at_experts(const Context&, const DispatchState&, const Tensor&) const = 0;
  virtual Tensor rows_by_expert(const Context&, const DispatchState&, const Tensor&) const = 0;

  // lay_out, permute and its gradient, of choices and probabilities that are fanned out.
  virtual void lay_out_rows(const Context&,
                            DispatchState&,
                            const Routed&,
                            const Tensor& counts_N) const = 0;
  virtual void permute_rows(const Context&, DispatchState&, const Routed&) const = 0;
  virtual void permute_rows_dgrad(const Context&, DispatchState&, const RoutedGradient&) const = 0;

  const config::ExpertGrid grid_;
};

// y[t] = h[t] + the sum of the rows that rows_Tm[t] names (-1 names none), for merge_forward. With
// model.moe_permute_fusion in one pass, in which the sum alone is not rounded.
void merge_rows(const Context&,
                const Tensor& y_TD,
                const Tensor& h_TD,
                const Tensor& returned_RD,
                const Tensor& rows_Tm);

// The groups a rank's experts' rows travel in.
struct EpGroups {
  // All ranks with experts of a layer, those that share an expert beside each other (tp_ep).
  comm::Communicator& ep;
  // In two hops: the ranks of the group with this one's place in their machine, one a machine; and
  // those of this rank's machine. Null where there is one.
  comm::Communicator* across = nullptr;
  comm::Communicator* within = nullptr;
};

// The dispatcher that model.moe_token_dispatcher_type names. A flex dispatcher takes two hops
// where `groups` has the two groups of them. With RowBudget::Lifted the
// dispatcher makes room for every row that arrives.
std::unique_ptr<Dispatcher> make_dispatcher(const config::ModelConfig& config,
                                            const EpGroups& groups,
                                            config::RowBudget budget);

}  // namespace weft::model
