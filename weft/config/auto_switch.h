// A switch that may be left to the run.
#pragma once

namespace weft::config {

// Whoever asks whether it is on gets what the run is judged and planned for. `automatic`: the run
// measures both in its first steps and goes on with the faster one.
struct AutoSwitch {
  constexpr AutoSwitch(bool is_on = false) : on(is_on) {}
  static constexpr AutoSwitch left_to_the_run() {
    AutoSwitch choice(true);
    choice.automatic = true;
    return choice;
  }

  constexpr operator bool() const { return on; }

  bool on = false;
  bool automatic = false;
};

}  // namespace weft::config
