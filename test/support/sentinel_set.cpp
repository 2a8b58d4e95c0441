#include <support/sentinel_set.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace latchkey::test {

namespace {

// The value of `key:` in an answer to INFO.
std::string info(raw_redis& server, std::string_view section, std::string_view key) {
  std::string const text = '\n' + server.text("INFO", section);
  auto const found = text.find('\n' + std::string(key) + ':');
  if (found == std::string::npos) return {};
  auto const begin = found + key.size() + 2;
  return text.substr(begin, text.find('\r', begin) - begin);
}

std::string field(raw_redis::reply const& list, std::string_view name) {
  for (std::size_t i = 0; i + 1 < list.elements.size(); i += 2)
    if (list.elements[i].text == name) return list.elements[i + 1].text;
  return {};
}

}  // namespace

sentinel_process::sentinel_process(std::uint16_t master, int quorum, std::vector<std::string> const& more) {
  std::string const file = folder_.path() + "/sentinel.conf";
  {
    std::ofstream out(file);
    out << "bind 127.0.0.1\nport " << port_ << "\ndir " << folder_.path() << "\nlogfile " << folder_.path() << "/log\n"
        << "sentinel monitor m 127.0.0.1 " << master << ' ' << quorum
        << "\n"
        // Nothing is to look like a failure before everybody knows everybody.
        << "sentinel down-after-milliseconds m 60000\nsentinel failover-timeout m 3000\nsentinel parallel-syncs m 1\n";
    for (auto const& line : more) out << line << '\n';
  }
  pid_ = start_program({"redis-server", file, "--sentinel"});
  must_happen(wait_until([&] { return static_cast<bool>(connect_to(endpoint{{}, port_})); }), "a sentinel answers");
}

sentinel_process::~sentinel_process() { kill(); }

std::uint16_t sentinel_process::master() const {
  auto const said = admin().ok("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m");
  return static_cast<std::uint16_t>(std::stoi(said.elements.at(1).text));
}

void sentinel_process::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void sentinel_process::pause() {
  ::kill(pid_, SIGSTOP);
  int status = 0;
  ::waitpid(pid_, &status, WUNTRACED);
}

void sentinel_process::resume() { ::kill(pid_, SIGCONT); }

std::string sentinel_process::log() const { return folder_.text_of("log"); }

sentinel_set::sentinel_set(wishes const& what) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    redis_options options{.tcp = true, .arguments = {"--repl-diskless-sync-delay", "0"}};
    options.arguments.insert(options.arguments.end(), what.server_arguments.begin(), what.server_arguments.end());
    if (i > 0)
      for (auto const& word :
           {std::string("--replicaof"), std::string("127.0.0.1"), std::to_string(nodes_[0]->where().port)})
        options.arguments.push_back(word);
    nodes_[i] = std::make_unique<redis_server>(std::move(options));
  }
  // Sentinels learn of replicas by INFO, every ten seconds.
  await_replicas(0, 2);
  for (auto& one : sentinels_)
    one = std::make_unique<sentinel_process>(nodes_[0]->where().port, 2, what.sentinel_lines);
  for (auto const& one : sentinels_) {
    auto admin = one->admin();
    must_happen(wait_until([&] {
                  auto const seen = admin.ok("SENTINEL", "MASTER", "m");
                  return field(seen, "num-other-sentinels") == "2" && field(seen, "num-slaves") == "2" &&
                         admin.command("SENTINEL", "CKQUORUM", "m").text.starts_with("OK 3 usable");
                }),
                "the sentinels know each other");
    admin.ok("SENTINEL", "SET", "m", "down-after-milliseconds", what.down_after.count());
  }
}

std::string sentinel_set::uri(std::string_view before, std::string_view after) const {
  std::string made = "redis-sentinel://" + std::string(before);
  for (auto const& one : sentinels_)
    made += (one == sentinels_[0] ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(one->port());
  return made.append(after);
}

std::size_t sentinel_set::index_of(std::uint16_t port) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i]->where().port == port) return i;
  throw std::runtime_error("a sentinel names a stranger");
}

std::size_t sentinel_set::master() {
  for (auto const& one : sentinels_)
    if (connect_to(endpoint{{}, one->port()})) return index_of(one->master());
  throw std::runtime_error("no sentinel is left");
}

// Sentinels whose votes were split vote again 6 s later.
void sentinel_set::await_successor(std::size_t of, int many) {
  must_happen(wait_until(
                  [&] {
                    return std::count_if(sentinels_.begin(), sentinels_.end(),
                                         [&](auto const& one) { return index_of(one->master()) != of; }) >= many;
                  },
                  4 * patience),
              "another node is promoted");
}

void sentinel_set::fail_over() {
  std::size_t const before = master();
  begin_fail_over();
  await_successor(before);
}

void sentinel_set::begin_fail_over(std::size_t leader) {
  // Until the sentinels have heard of a replica's state there may be no good one.
  must_happen(wait_until([&] {
                auto const said = sentinels_[leader]->admin().command("SENTINEL", "FAILOVER", "m");
                return !said.is_error() || said.text.starts_with("INPROG");
              }),
              "a failover can begin");
}

void sentinel_set::cut_replication(std::size_t replica) { test::cut_replication(*nodes_[replica]); }

void sentinel_set::await_replicas(std::size_t of, int many) {
  auto admin = nodes_[of]->admin();
  must_happen(wait_until([&] {
                if (info(admin, "replication", "connected_slaves") != std::to_string(many)) return false;
                for (int i = 0; i < many; ++i)
                  if (info(admin, "replication", "slave" + std::to_string(i)).find("state=online") == std::string::npos)
                    return false;
                return true;
              }),
              "the replicas follow");
}

}  // namespace latchkey::test
