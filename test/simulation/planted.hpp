#pragma once

#include <string>

namespace latchkey::simulation {

// A fault on purpose, of which the checks are not told: a script in which one place is another, or a trick.
struct planted_fault {
  enum class trick : unsigned char {
    none,
    loses_keys,          // a key of the server vanishes now and then
    keeps_still,         // messages reach nobody
    completes_twice,     // a call
    never_completes,     // some call
    tells_loss_twice,    // to a holder
    tells_of_released,   // the loss of a hold goes to whoever has released it
    forgets_a_call,      // it is over, and nobody is told
    leaves_a_record,     // somebody waits on when all is at rest
    lends_twice,         // the direct lane, to whoever asks while another one has it
    writes_on,           // to a connection that was just closed
    hides_errors,        // of the members of a joint lock: its caller is told that it is busy
    always_released,     // whatever a release found, its caller is told that he released
    excuses_nothing,     // what comes late where CLIENT KILL is refused
    leaves_a_key,        // at the end
    chatters,            // at rest
    minority,            // one member makes a joint lock
    keeps_members,       // of a joint lock that it should give back
    trusts_the_longest,  // a joint lock is trusted as long as the member that lasts longest
    sleeps_late,         // a caller, and hears of the end of his wait too late
    shows_on,            // a lease whose hold was lost
    unlocks_leases,      // an unlock ends what a lease shows
    hurries,             // a client, to connect again
    never_lets_go        // a client that hands its lock on without end
  };
  std::string script{};  // as simulated_kind::scripts() calls it
  std::string there{};
  std::string instead{};
  trick what = trick::none;
};

}  // namespace latchkey::simulation
