// Flex dispatcher: a token travels once to each group of ranks with its experts, and is expanded
// there. Its choices and probabilities travel with it. The experts' outputs are summed before they
// travel back.
//
// Within one machine, a group is one rank. Between machines, a group is a machine: the copy goes to
// the rank at the same position in that machine, which forwards it. A token so crosses machines
// once (derive::machines_of_hops). Both hops have the same form; there are one or two. The middle
// rank's work between hops (sorting, copying, summing) belongs to the transport, as the sum belongs
// to an all-reduce. It runs on the communication lane, under other compute.
#pragma once

#include "weft/model/moe/dispatcher.h"

namespace weft::model {

class Flex final : public Dispatcher {
 public:
  Flex(const config::ModelConfig& config, const EpGroups& groups, config::RowBudget budget);

  std::int64_t counts() const override { return hops(0).counts(); }
  bool host_learns() const override { return !bounded_; }
  void plan_on_host(DispatchState&, const Tensor& shown_GN) const override;
  void plan_on_device(const Context&, DispatchState&, const Tensor&, const Tensor&) const override;

  void dispatch_forward(const Context&, DispatchState&) const override;
  ExpertRows arrange_forward(const Context&, DispatchState&) const override;
  void restore_forward(const Context&, DispatchState&, const Tensor&) const override;
  void combine_forward(const Context&, DispatchState&) const override;
  void merge_forward(const Context&,
                     DispatchState&,
                     const Tensor& y_TD,
                     const Tensor& h_TD) const override;

  void restore_dgrad(const Context&, DispatchState&, const Tensor&, const Tensor&) const override;
  void dispatch_dgrad(const Context&, DispatchState&) const override;

 private:
  void lay_out_rows(const Context&, DispatchState&, const Routed&, const Tensor&) const override;
  void permute_rows(const Context&, DispatchState&, const Routed&) const override;
  Tensor wire_rows(const Context&, const DispatchState&, const Tensor& x_TD) const override;
  Tensor rows_at_experts(const Context&, const DispatchState&, const Tensor&) const override;
  Tensor rows_by_expert(const Context&, const DispatchState&, const Tensor&) const override;
  void permute_rows_dgrad(const Context&, DispatchState&, const RoutedGradient&) const override;

  kernels::Hops hops(std::int64_t most_tokens) const;
  bool two_hops() const { return within_ != nullptr && within_->size() > 1; }
  void fan_out(const Context&, DispatchState&) const;
  Tensor back(const Context&, const DispatchState&, Tensor rows, comm::Content) const;

  const config::ModelConfig& config_;
  comm::Communicator& ep_;
  comm::Communicator& across_;
  comm::Communicator* within_;  // nullptr: one hop
  const bool padded_;
  const bool bounded_;  // the host never learns the counts: rows have a budget, or are padded
};

}  // namespace weft::model
