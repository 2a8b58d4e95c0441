#pragma once

#include <machine/context.hpp>
#include <machine/home.hpp>
#include <machine/link.hpp>

#include <boost/intrusive/list.hpp>

#include <string_view>
#include <vector>

namespace latchkey::detail {

// Told by the plain calls.
class plain_calls_user {
 public:
  // Of the server that is to be asked.
  virtual home& home_of(operation const& call) = 0;
  // A force-unlock, sent at that time, has removed whoever had the name.
  virtual void forced(operation const& call, instant sent) = 0;
  // A force-unlock leaves now: nobody knows when it runs.
  virtual void forces(operation const& call) = 0;
  virtual std::uint64_t shown_as(operation const& call) const = 0;
  // What the server said of an owner may concern another one of this client, or lag behind.
  virtual void correct(operation& query) const = 0;
  // It ends: wherever else it stands nobody waits for it any more.
  virtual void forget(operation& call) = 0;

 protected:
  ~plain_calls_user() = default;
};

// The calls that no owner has: queries, force-unlocks and connects. What their answers mean, whether they go on without
// one, and their ends. A connect is over when the server has run a script for it, and the other two connections are
// there or will not be soon. Which keys and channels a program will use is not known: what is asked for has neither.
class plain_calls final : public plain_listener {
 public:
  plain_calls(context& shared, plain_calls_user& user) : shared_(shared), user_(user) {}

  void connect_begins() {
    if (connects_++ == 0) connecting_since_ = shared_.now;
  }
  bool connecting() const { return connects_ > 0; }
  instant connecting_since() const { return connecting_since_; }
  // The server has run its script.
  bool any_connect_answered() const { return !waking_.empty(); }
  void end_connects();
  void restart_connects();

  outbox& requests_of(operation const& call) const override { return user_.home_of(call).requests; }
  void sends(operation const& call) override {
    if (call.what == operation::type::force_unlock) user_.forces(call);
  }
  std::uint64_t shown_as(operation const& call) const override { return user_.shown_as(call); }
  void answered(sent_call const& call, reply const& answer, outbox const& by) override;
  void again(operation& plain) override { user_.home_of(plain).requests.add(plain); }
  void not_run(operation& plain, server_error const& why, std::string_view text) override;
  void unanswered(operation& plain) override;
  // After trouble that passes. False: its attempts are used up.
  bool goes_on(operation& plain, error_code const& why, std::string_view text) const;

  // The call ends now, whatever is still under way for it.
  void expire(operation& call, error_code const& why) override;
  void expire(operation& call);  // by its deadline
  // Those that the server has answered.
  void collect(std::vector<operation*>& calls);

 private:
  context& shared_;
  plain_calls_user& user_;
  unsigned connects_ = 0;  // calls of connect that are not completed
  instant connecting_since_{};
  boost::intrusive::list<operation> waking_;  // those that the server has answered: other links are awaited
};

}  // namespace latchkey::detail
