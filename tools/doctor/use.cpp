#include <latchkey/latchkey.hpp>

#include <base/exit_code.hpp>
#include <base/failures.hpp>
#include <base/kinds.hpp>
#include <chrono>
#include <condition_variable>
#include <doctor/checks.hpp>
#include <doctor/rights.hpp>
#include <future>
#include <mutex>

namespace latchkey::tool {
namespace {

using std::chrono::seconds;

// Which of what does no more than slow a lock down was refused to a client.
class refusals {
 public:
  void on_event(event const& what) {
    std::scoped_lock const lock(mutex_);
    waiting_ = waiting_ || what.type == event_type::waiting;
    if (what.type == event_type::subscribe_refused || what.type == event_type::publish_refused)
      text_ = std::string(to_string(what.type)) + (what.text.empty() ? "" : ": " + std::string(what.text));
    changed_.notify_all();
  }
  // Somebody was told that it is busy.
  void wait_for_waiter() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, seconds(3), [&] { return waiting_; });
  }
  std::string text() {
    std::scoped_lock const lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool waiting_ = false;
  std::string text_;
};

config settings_of(doctor_plan const& plan, std::shared_ptr<refusals> const& seen) {
  auto made = plan.server.settings;
  made.retry_attempts = 1;
  made.on_event = [seen](event const& what) { seen->on_event(what); };
  return made;
}

// Taken, extended, waited for, and passed on: by messages, so by another client.
void use_lock(doctor_plan const& plan, std::string const& kind, std::shared_ptr<refusals> const& seen) {
  client const first(plan.server.uri, settings_of(plan, seen)), second(plan.server.uri, settings_of(plan, seen));
  acquire_options options;
  options.wait = seconds(5);
  options.lease = seconds(10);
  auto held = lock_of(first, kind, plan.scratch).acquire(options);
  if (!held) throw failure(still_busy, "the scratch name is in use");
  if (!held.extend(seconds(20))) throw failure(lock_lost, "the server lost a lock within a moment");
  auto waiter =
      std::async(std::launch::async, [&, lock = lock_of(second, kind == "read" ? "write" : kind, plan.scratch)] {
        return lock.acquire(options).release();
      });
  seen->wait_for_waiter();
  held.release();
  waiter.get();
}

void use_permits(doctor_plan const& plan, std::shared_ptr<refusals> const& seen) {
  client const first(plan.server.uri, settings_of(plan, seen)), second(plan.server.uri, settings_of(plan, seen));
  auto const all = first.get_permit_semaphore(plan.scratch);
  static_cast<void>(all.try_set_permits(1));
  auto const id = all.try_acquire(seconds(5), seconds(10));
  if (!id) throw failure(still_busy, "the scratch name is in use");
  static_cast<void>(all.update_lease_time(*id, seconds(20)));
  auto waiter = std::async(std::launch::async, [&, theirs = second.get_permit_semaphore(plan.scratch)] {
    if (auto const next = theirs.try_acquire(seconds(5), seconds(10))) theirs.release(*next);
  });
  seen->wait_for_waiter();
  all.release(*id);
  waiter.get();
}

void remove_scratch(session& server, std::string const& name) {
  auto const braced = '{' + name + '}';
  for (auto const& key : {name, "redisson_lock_token:" + braced, "redisson_lock_queue:" + braced,
                          "redisson_lock_timeout:" + braced, braced + ":timeout"})
    server.ask_all({{"DEL", key}});
}

// What a semaphore remembers of its requests goes by itself, after a while; here at once, if it is found.
void remove_requests(session& server, std::string const& name) {
  constexpr int most_pages = 200;
  std::string cursor = "0";
  for (int i = 0; i < most_pages; ++i) {
    auto const page =
        server.ask_all({{"SCAN", cursor, "MATCH", "latchkey_request:{" + name + "}:*", "COUNT", "512"}}).front();
    if (page.what != answer::type::list || page.list.size() != 2) return;
    for (auto const& key : page.list[1].list) server.ask_all({{"DEL", key.text}});
    cursor = page.list[0].text;
    if (cursor == "0") return;
  }
}

// What helps where no right is missing, by the server's words.
std::string remedy_of(std::string const& words) {
  static constexpr std::pair<std::string_view, char const*> known[] = {
      {"OOM", "a higher maxmemory, or fewer keys"},
      {"MISCONF", "the server's log says why it cannot save; then BGSAVE"},
      {"LOADING", "wait until the server has read its data"},
      {"NOREPLICAS", "more replicas, or a lower min-replicas-to-write"},
      {"READONLY", "the URI of its primary"},
      {"CLUSTERDOWN", "redis-cli --cluster check"},
      {"MOVED", "redis-cluster://"},
  };
  for (auto const& [word, remedy] : known)
    if (words.find(word) != words.npos) return remedy;
  return "see rights.KIND in docs/runbook.md";
}

// Of a command inside a script the server says that it is refused, not which.
std::string named_right(session& server, session* admin, std::string const& kind, std::string const& name) {
  if (!admin) return {};
  auto const me = server.ask_all({{"ACL", "WHOAMI"}}).front();
  if (me.what != answer::type::text) return {};
  auto const found = rights_refused(*admin, me.text, kind, name);
  return found.needed.empty() ? std::string() : ": " + found.needed;
}

}  // namespace

void check_rights(findings& out, session& server, session* admin, doctor_plan const& plan) {
  for (auto const& kind : plan.kinds) {
    auto const id = "rights." + kind;
    auto const remedy = "ACL SETUSER ... " + acl_words(server, kind, plan.names());
    auto const seen = std::make_shared<refusals>();
    try {
      if (kind == "semaphore")
        use_permits(plan, seen);
      else
        use_lock(plan, kind, seen);
      auto const refused = seen->text();
      if (refused.empty())
        out.ok(id, "taken, extended, waited for and released");
      else
        out.warn(id, refused, remedy);
    } catch (lock_error const& error) {
      auto const said = failure_of("not to be used", error);
      if (said.code() == no_permission)
        out.fail(id, said.what() + named_right(server, admin, kind, plan.scratch), remedy);
      else
        out.fail(id, said.what(), remedy_of(said.what()));
    } catch (failure const& error) {
      out.fail(id, error.what(), remedy_of(error.what()));
    }
    remove_scratch(server, plan.scratch);
    if (kind == "semaphore") remove_requests(server, plan.scratch);
  }
}

}  // namespace latchkey::tool
