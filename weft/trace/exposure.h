// How much communication was hidden under compute, how much was exposed, and why.
//
// Of one rank and one step, as unions of intervals, never sums of durations:
//   communication  its nodes on communication lanes, from when the rank is ready (it may still wait
//                  for its peers) to the end
//   hidden_any     the share of it in which some operation of the compute lane ran
//   hidden_gemm    the share in which a matrix product or attention did
//   exposed        communication less compute
// Copies between a device and its host are a kind of their own, and not part of the total.
//
// Every exposed moment has one reason, the first of these that holds:
//   peer         not all ranks of the operation have begun it: they are late (imbalance)
//   host         the next node of the compute lane has all it waits for, but has not begun; or it
//                has begun and is between two operations
//   no_partner   the order of the graph lets no compute run beside the communication (the first
//                forward, the last backward, a plain order)
//   short_cover  the order does, but that compute was over, or itself waited for something
// Where several nodes communicate at once, the moment is the peers' fault if all of them wait for
// peers, and has no partner if none of those that do not wait is coverable.
//
// Times are a step's: means over the traced runs, and for several ranks over the ranks.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/trace/shortened.h"
#include "weft/trace/span.h"

namespace weft::trace {

struct Reasons {
  double no_partner_ms = 0;
  double short_cover_ms = 0;
  double peer_ms = 0;
  double host_ms = 0;  // the four add up to exposed_ms
};

struct CommunicationTime {
  double communication_ms = 0;
  double hidden_any = 0;  // shares of communication_ms; 0 where that is 0
  double hidden_gemm = 0;
  double exposed_ms = 0;
  Reasons reasons;
};

// By kind of communication: "ep", "dp", "pp", ..., and "copy", either way
using CommunicationKinds = std::map<std::string, CommunicationTime>;

struct RankExposure {
  int rank = 0;
  std::string label;
  CommunicationKinds kinds;
  CommunicationTime total;
};

struct Exposure {
  std::vector<double> step_ms;  // of each traced run, from its first span to its last
  std::vector<RankExposure> ranks;
  CommunicationKinds kinds;  // of a rank in the mean
  CommunicationTime total;

  double mean_step_ms() const;
};

// Whether the times of different ranks may be compared: threads and processes of one host share a
// clock. Where they do not, the time a rank waited for its peers is taken to be the beginning of
// its span, as long as that lasted longer than the shortest of the operation.
enum class Clocks { Shared, Separate };

// Of the whole step, where the timelines show fewer micro-batches.
Exposure analyse(std::span<const Timeline> timelines,
                 Clocks clocks = Clocks::Shared,
                 const Shortened& shortened = {});

base::Json to_json(const Exposure& exposure);
base::Json to_json(const CommunicationTime& time);
// A table of kinds and their total, for people.
std::string to_table(const Exposure& exposure);
// What its words mean, each line behind `indent`.
std::string legend(std::string_view indent = "");

}  // namespace weft::trace
