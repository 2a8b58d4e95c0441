#pragma once

#include <base/instant.hpp>
#include <codec/reply.hpp>
#include <engine/busy_look.hpp>
#include <engine/tls.hpp>
#include <engine/wake_flag.hpp>
#include <latchkey/error.hpp>

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace latchkey::detail {

// The connection that one blocking caller at a time borrows, so that a call costs no wake-up of another thread.
// Owns the descriptor: it is closed when neither the engine nor a borrower refers to the lane any more.
class direct_lane {
 public:
  // Without `tls` in plain text.
  direct_lane(std::uint32_t serial, int fd, std::unique_ptr<tls_session> tls, milliseconds timeout,
              std::chrono::microseconds longest_look);
  ~direct_lane();
  direct_lane(direct_lane const&) = delete;
  direct_lane& operator=(direct_lane const&) = delete;

  std::uint32_t serial() const { return serial_; }

  // Takes the request over and leaves an empty buffer, whose memory is used again.
  void take(std::string& request);

  // Borrower: sends what was taken and reads one reply, answer(), until `end`, the time-out of one answer, or until its
  // call has ended otherwise, which it notices within 20 ms. After an error nothing more can be said on this lane.
  error_code exchange(instant now, instant end, wake_flag const& over);
  reply const& answer() const { return answer_; }

  // Engine: nothing comes through any more, and a borrower who sleeps wakes up. Any thread.
  void shut() noexcept;
  // The same, and what has not left yet never does.
  void abort() noexcept;

  // Engine: another descriptor of the same socket, owned by the caller; -1 if there is none left.
  int duplicate() const noexcept;
  // Engine, while nobody has borrowed it: as `send` and `recv`, without waiting.
  long write_now(void const* from, std::size_t size) { return send(from, size, MSG_DONTWAIT); }
  long read_now(void* to, std::size_t room) { return receive(to, room, MSG_DONTWAIT); }
  // Asio makes a copy of the descriptor non-blocking, and with it this one.
  void make_blocking() noexcept;

 private:
  long send(void const* from, std::size_t size, int flags);
  long receive(void* to, std::size_t room, int flags);
  bool something_came();
  error_code send_all(instant end, wake_flag const& over);
  error_code receive(instant now, instant end, wake_flag const& over);
  // Bytes read, or -1 and errno.
  long look(instant end);
  long sleep(instant end, wake_flag const& over);
  // False: it is not worth waiting any longer.
  bool wait_for(short events, instant end, wake_flag const& over) const;

  std::uint32_t serial_;
  int fd_;
  std::unique_ptr<tls_session> const tls_;  // null: plain text
  milliseconds timeout_;
  milliseconds slice_;  // of a sleep in the socket
  busy_look busy_;
  std::string request_;
  reply_reader reader_;
  reply answer_;  // kept, so that its memory is used again
  std::array<char, 4096> buffer_;
};

}  // namespace latchkey::detail
