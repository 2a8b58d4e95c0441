#pragma once

#include <base/instant.hpp>
#include <codec/reply.hpp>
#include <latchkey/config.hpp>
#include <latchkey/stats.hpp>
#include <machine/actions.hpp>
#include <machine/operation.hpp>
#include <wire/node_address.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::detail {

// A whole client without I/O, threads or clocks: events and the time go in, actions come out.
//
// One mutex guards it. It is held for one call and never across I/O. After every call the engine performs
// what was appended to `actions`; if `actions.turn` is set it calls turn() soon, on the I/O executor. It calls
// time() at wake_at(), which any call may have moved.
class client_machine {
 public:
  struct identity {
    std::string client_id;  // UUID
    std::string username;
    std::string password;
    int database = 0;
    std::uint64_t seed = 1;  // of the back-off's randomness
    std::string address{};   // of the server, for texts
    // Not empty: they know the server of this name.
    std::vector<node_address> sentinels{};
    std::string master{};
    // Not empty: of a cluster.
    std::vector<node_address> nodes{};
    bool by_name = false;  // see cluster_seeds
    std::string sentinel_username{};
    std::string sentinel_password{};
    std::function<std::chrono::microseconds()> time_of_day{};  // since 1970, by this machine; empty: of no interest
  };

  client_machine(config const& settings, identity who);
  ~client_machine();
  client_machine(client_machine const&) = delete;
  client_machine& operator=(client_machine const&) = delete;

  // --- callers, any thread ---

  // Makes room for a call that is about to be started.
  // \throws std::bad_alloc: nothing has changed, and nothing is to be started.
  void prepare(operation const& call, actions& out);
  // It is not started after all.
  void unprepare(operation const& call) noexcept;
  // Starts calls. With `may_borrow` what the first of them asks, and the others with it by one script, may go by a
  // direct lane: then the number of that is returned, and the caller is to send lane_bytes() there, to read one reply
  // and to give it to lane_answer (or lane_failed). Else zero.
  std::uint32_t start(std::span<operation* const> calls, bool may_borrow, instant now, actions& out);
  // The caller gives up: completes with operation_aborted (waiting operations only; others are left alone).
  void cancel(operation& call, instant now, actions& out);
  // The call's deadline has passed on the caller's own clock: completes as it would by time(). Exception: a first
  // try that is on its way is still awaited; then `call.deadline` has moved on, and the caller sleeps until there.
  void expire(operation& call, instant now, actions& out);
  // A lease goes away without waiting: its release is sent in the background. Nothing happens for a hold that ended.
  void drop(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold, instant now, actions& out);
  // The lease that shows this hold is going away, or is about to be released: forget where to show it.
  void unlink(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold);
  // This hold ends with the lease that it has.
  void renew_no_longer(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold);
  // A hold goes on without this client, which neither renews nor releases it any more.
  detached detach(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold, instant now,
                  actions& out);
  // All that this owner holds by no lease ends with its leases: the thread that it stands for has ended.
  void thread_ended(std::uint64_t owner, instant now, actions& out);
  // Would another owner's wait for this mode end only with a release by this owner, as far as this client knows?
  bool keeps_out(kind const& which, std::string_view name, std::uint64_t owner, unsigned char mode) const;
  // Under whose number the server shows what this owner holds; see tenure.
  std::uint64_t shown_as(kind const& which, std::string_view name, std::uint64_t owner) const;
  // Until when this hold is trusted if nothing more is heard; zero: not any more.
  instant trusted_until(kind const& which, std::string_view name, std::uint64_t owner, hold_id hold) const;

  // --- the direct lanes: whoever was told so by start() ---

  enum class lane_next : unsigned char {
    done,        // the lane is given back
    send_again,  // send lane_bytes() again (the script's text) and read another reply
    taken,       // the engine has taken the lane back meanwhile: the reply counts for nothing
  };
  std::string& lane_bytes(std::uint32_t serial);
  lane_next lane_answer(std::uint32_t serial, reply const& answer, instant now, actions& out);
  void lane_failed(std::uint32_t serial, error_code const& why, instant now, actions& out);

  // --- the engine, on its executor ---

  void turn(instant now, io_actions& io, actions& out);
  // `peer`: what the connection reached, as CLIENT LIST's laddr would name it; for the texts of events only.
  void opened(std::uint32_t serial, instant now, actions& out);
  void open_failed(std::uint32_t serial, error_code const& why, std::string_view text, instant now, actions& out);
  // There cannot be any connection, nor a timer: every call is over.
  void unreachable(std::string_view text, instant now, actions& out);
  void received(std::uint32_t serial, std::string_view bytes, instant now, actions& out);
  void broken(std::uint32_t serial, error_code const& why, instant now, actions& out);
  void time(instant now, actions& out);
  // What has failed may go well now: it is tried without a pause.
  void hurry(instant now, actions& out);
  // The server may have lost what this client holds: whatever is renewed is renewed before anything else is asked.
  void doubt_holds(instant now, actions& out);
  instant wake_at() const;

  // --- the end ---

  // Begins it: completes every call with `closed` but those that give something back, and refuses new ones; tells
  // leases (a loss, `closed`), whose holds are renewed until they are released; releases what this owner holds by no
  // lease. When no lease is left, at the latest a little before config::close_timeout, what is still held is left to
  // its lease, and the machine is closed. Again: only for another owner.
  void close(std::uint64_t closer, instant now, actions& out);
  // So many more leases, of holds that are none of this machine's, are waited for.
  void await_lease(int more, instant now, actions& out);
  // The same without waiting for leases.
  void close_now(instant now, actions& out);
  bool closed() const;
  // Nothing is left to be said to the server.
  bool quiet() const;

  // Nothing is due, and no answer is awaited: only time, callers and messages can change anything.
  bool settled(instant now) const;

  // Nobody holds, waits or listens, and nothing is under way for any name.
  bool idle() const;

  void snapshot(stats& out) const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace latchkey::detail
