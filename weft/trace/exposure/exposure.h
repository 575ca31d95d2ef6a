// Communication hidden under compute, communication exposed, and the reasons.
//
// For one rank and one step, as unions of intervals, never sums of durations:
//   communication  nodes on communication lanes, from when the rank is ready (it may still wait
//                  for its peers) to the end
//   hidden_any     share of it in which some operation of the compute lane ran
//   hidden_gemm    share of it in which a matrix product or attention ran
//   exposed        communication without compute
// Copies between a device and its host are a kind of their own, and not part of the total.
//
// Every exposed moment has one reason, the first of these that holds:
//   peer         not all ranks of the operation have begun it: they are late (imbalance)
//   host         the next node of the compute lane has all it waits for, but has not begun; or it
//                has begun and is between two operations
//   no_partner   the order of the graph lets no compute run beside the communication (the first
//                forward, the last backward, a plain order)
//   short_cover  the order lets compute run, but that compute was over, or waited itself
// If several nodes communicate at once, the reason is peer if all of them wait for peers. It is
// no_partner if none of the nodes that do not wait is coverable.
//
// Times are per step: means over the traced runs, and over the ranks if there are several.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/trace/exposure/shortened.h"
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
  double hidden_any = 0;  // shares of communication_ms; 0 if communication_ms is 0
  double hidden_gemm = 0;
  double exposed_ms = 0;
  Reasons reasons;
};

// Keyed by kind of communication: "ep", "dp", "pp", ..., and "copy" for both directions.
using CommunicationKinds = std::map<std::string, CommunicationTime>;

struct RankExposure {
  int rank = 0;
  std::string label;
  CommunicationKinds kinds;
  CommunicationTime total;
};

struct Exposure {
  std::vector<double> step_ms;  // per traced run, from first to last span
  std::vector<RankExposure> ranks;
  CommunicationKinds kinds;  // mean over the ranks
  CommunicationTime total;

  double mean_step_ms() const;
};

// Shared: times of different ranks are comparable, as threads and processes of one host share a
// clock. Separate: a rank's wait for its peers is assumed at the beginning of its span. The wait
// lasts as long as the span exceeds the operation's shortest span.
enum class Clocks { Shared, Separate };

// Exposure of the whole step, also if the timelines leave out micro-batches.
Exposure analyse(std::span<const Timeline> timelines,
                 Clocks clocks = Clocks::Shared,
                 const Shortened& shortened = {});

base::Json to_json(const Exposure& exposure);
base::Json to_json(const CommunicationTime& time);
// Text table of kinds and their total.
std::string to_table(const Exposure& exposure);
// Definitions of the table's words; each line begins with `indent`.
std::string legend(std::string_view indent = "");

}  // namespace weft::trace
