#pragma once

#include <latchkey/boost_guard.hpp>
#include <latchkey/lock_state.hpp>
#include <latchkey/timespan.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::testing {

/// A modelled Redis inside the process of a test, whose time, faults and other users the test commands.
///
/// Clients reach it by a Unix socket in a private folder, so whatever uses latchkey is tested as it is. It runs the
/// scripts of latchkey and of Redisson themselves, by Lua 5.1, and knows the commands that these need, with the answers
/// of Redis 7; any other command is answered as an unknown one. Nothing is written to a disk.
///
/// \par Time
/// The server's clock begins with the time of day and then stands still: a lease ends only by `advance`, or after
/// `real_time`. The clock by which the clients *of this process* count goes on by itself and jumps with each `advance`,
/// as if the machine had slept: what is due by then is due at once, and is done by the clients' own threads, within
/// microseconds and without sleeping. That clock is one for the process: an `advance` of one server is also felt by the
/// clients of another, whose server then stands behind. No server is ever ahead of a client. Clients in other
/// processes can use the server, but only their own clock moves them. Make the server before the clients: those that
/// were made before the first server of a process wake up late.
///
/// \par Threads
/// All members may be called from any thread, in callbacks too, beside each other and beside the clients. What they
/// change is changed when they return, between two commands of clients. `advance`, `lose` and `take` first let the
/// clients of this server, as far as they are of this process, finish what is under way, and afterwards what follows:
/// when they return, `held` and `remaining` say so, renewals are answered, and waiters wait again. This takes
/// microseconds; what cannot be finished is awaited for 5 s, or for 10 ms where the program runs the client's
/// executor. Callbacks and handlers run on their own threads, and may come later, and so do locks of several members
/// hear of their members: wait for them, with a limit.
///
/// \par Errors
/// `std::invalid_argument` for what an argument cannot be; nothing has changed then. `lock_error` and
/// `std::system_error` from the constructor alone.
///
/// \par Fork
/// In the child of a fork only the destructor may be called, and does nothing.
class server {
 public:
  /// Listens from now on; empty, with the rights and the settings of a fresh server, version 7.
  /// \throws lock_error `connect_failed`: no private folder can be made. `std::system_error`: no socket or thread.
  server();
  /// Ends it: connections break, and the folder is removed. Clients that are left try in vain to connect again.
  ~server();
  server(server const&) = delete;
  server& operator=(server const&) = delete;

  /// Where clients find it: `unix:///...`. The same as long as the server lives, also after `restart`.
  std::string const& uri() const noexcept;

  // --- time ---

  /// Moves the server's clock and the clock of all clients of this process, in one jump. A lease that is shorter is
  /// over, with a watchdog too: for renewals go in steps of less than the lease. One of exactly that length is over for
  /// its holder, and has its last millisecond on the server.
  /// \throws std::invalid_argument negative, or more than a hundred years in all.
  void advance(timespan by);
  /// From now on the server's clock also goes by itself. `advance` still moves it.
  void real_time();

  // --- what befalls a lock ---

  /// Removes the key of a lock and tells nobody, as DEL does. Clients of this process that hold something here and
  /// renew it ask for it at once, so a lease without a fixed length is lost at once. A lease of fixed length is
  /// never asked for: its holder learns of the loss at its end, or with `extend` or `release`, as with a real server.
  /// False: there was none.
  bool lose(std::string_view name);
  /// Gives the lock to somebody else, for 30 s of the server's time, whoever holds it; clients are told as by `lose`.
  /// A key that is there keeps its kind: the value of a plain lock, the writing side of a read-write lock. A fencing
  /// token that there is already rises. That somebody is `other_holder` in `holders`.
  void take(std::string_view name);
  /// The client id that `take` uses.
  static constexpr std::string_view other_holder = "00000000-0000-4000-8000-000000000000";

  // --- what befalls the network ---

  /// Ends all connections, once: what was under way in them is lost, commands and answers. Clients may come back.
  void cut();
  /// Answers nothing and reads nothing until `thaw`, though connections can be made, as a process that is stopped. Time
  /// and everything else here go on.
  void freeze();
  /// Ends `freeze`: what was sent meanwhile is run, in the time that it is now. Nothing happens if it is not frozen.
  void thaw();

  // --- what the server refuses ---

  /// The next `times` calls of a command by clients are answered with this error and not run: `"OOM command not
  /// allowed"`. Of a command with subcommands all, or one as `"client|kill"`; the case of letters does not matter.
  /// Locks are taken and given back by `evalsha`. What passes by itself, as `OOM`, `LOADING` and `BUSY`, clients try
  /// again; after `ERR` they cannot know whether something ran, and give it back by another `evalsha`. Failures of one
  /// command come in the order in which they were asked for. \throws std::invalid_argument an unknown command, no
  /// words, a line break in them, or less than one time.
  void fail_next(std::string_view command, std::string_view words, int times = 1);
  /// From now on nobody may use a command, as without the right to it: `NOPERM`, in scripts too. As in `fail_next` it
  /// may be a subcommand. `deny("publish")` is what an access list for locks often forgets. \throws
  /// std::invalid_argument an unknown command.
  void deny(std::string_view command);
  /// Ends `deny` of this command.
  void allow(std::string_view command);
  /// Ends all connections and forgets scripts and, without `keep_data`, all keys. Comes back at once; settings of this
  /// object stay.
  void restart(bool keep_data);
  /// From now on what is published reaches nobody, although PUBLISH says that it did; `mute(false)` ends that.
  void mute(bool on = true);

  // --- to be looked at ---

  /// Who holds a lock, as the server shows it: several for a read-write lock, none if it is free. `holder::from` is the
  /// connection of that client, if it has one here.
  std::vector<holder> holders(std::string_view name) const;
  /// What clients have sent, the oldest first, each as one line: words with a blank between them, in quotes where a
  /// word is empty or has other characters than `!` to `~`. Commands that were refused are there, those inside scripts
  /// are not. The last 10,000.
  std::vector<std::string> commands() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace latchkey::testing
