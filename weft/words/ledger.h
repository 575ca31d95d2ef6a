// A config while words are applied to it, in their order: who set each key, and what a later word
// overrode.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"
#include "weft/config/finding.h"
#include "weft/words/words.h"

namespace weft::words {

class Ledger {
 public:
  explicit Ledger(const config::Config& start) : config_(start) {}

  // As it stands.
  const config::Config& config() const { return config_; }

  // The word sets its key, or gives it back its default.
  void apply(const Asked& asked);
  // A flag sets the key it is for, which is what was asked and needs no finding.
  void set(const Asked& asked, std::string_view key, std::string_view value);
  // A flag sets a key beside: an automatic finding of rule `id`, where the value changes.
  void imply(const Asked& asked,
             std::string_view id,
             std::string_view key,
             std::string_view value,
             const std::string& why);
  // The same with a warning: the user asked for something else.
  void mend(const Asked& asked,
            std::string_view id,
            std::string_view key,
            std::string_view value,
            const std::string& why,
            const std::string& fix);

  // The key gets a value that no word asks for: it is neither a claim nor a finding. False where
  // the value is not of the key's type.
  bool assume(std::string_view key, std::string_view value);

  void warn(std::string_view id, std::string_view key, std::string message, std::string fix);
  // The word asks for what Weft does not know: rule H21, and no training.
  void leave_out(const Asked& asked, std::string_view why);
  void complain(std::string what) { complaints_.push_back(std::move(what)); }

  // Whether a word set the key; whether one after `asked` did.
  bool has_claim(std::string_view key) const { return claims_.contains(key); }
  bool is_set_after(const Asked& asked, std::string_view key) const;

  // Every key that words set, with the word.
  struct SetKey {
    std::string key;
    std::string typed;
  };
  const std::vector<SetKey>& set_keys() const { return set_keys_; }

  std::vector<config::Finding> take_warnings() { return std::move(warnings_); }
  // Without those that a later word undid.
  std::vector<config::Finding> take_automatic();
  std::vector<std::string> take_complaints() { return std::move(complaints_); }
  // Those whose value could not be read, and that keep the one they had.
  std::vector<std::string> take_refused_keys() { return std::move(refused_keys_); }

 private:
  struct Claim {
    std::string typed;
    int place = 0;
    base::Json value;
  };
  struct Change {
    base::Json from, to;
  };
  Change change(const Asked& asked, std::string_view key, std::string_view value);
  // Reports what the word overrides of an earlier one, and takes the key.
  void claim(const Asked& asked, const std::string& key, const base::Json& value);

  config::Config config_;
  std::map<std::string, Claim, std::less<>> claims_;
  std::vector<SetKey> set_keys_;
  std::vector<config::Finding> warnings_, automatic_;
  std::vector<std::string> complaints_, refused_keys_;
};

}  // namespace weft::words
