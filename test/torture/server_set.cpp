#include <interop/support/peer.hpp>
#include <torture/failovers.hpp>
#include <torture/kinds.hpp>
#include <torture/run.hpp>
#include <torture/stage.hpp>
#include <torture/topology.hpp>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace latchkey::torture {

namespace {

constexpr std::int64_t look_every = 5 * ms;

std::vector<std::string> names_of(options const& run) {
  std::vector<std::string> made;
  for (auto const kind : run.kinds)
    if (torture_kinds()[kind].who == rule::alone || torture_kinds()[kind].who == rule::readers_writer)
      for (std::uint32_t lock = 0; lock < locks_of_a_kind; ++lock) made.push_back(lock_name(kind, lock));
  for (std::size_t w = 0; w < ways; ++w) made.push_back(counter_name(static_cast<way>(w), 0));
  return made;
}

std::unique_ptr<topology> begin(options const& run) {
  return run.topology == "cluster" ? make_cluster(names_of(run)) : make_sentinels();
}

std::vector<mishap> chosen(options const& run, std::vector<mishap> all) {
  auto const& names = run.mishaps;
  if (!names.empty())
    std::erase_if(all, [&](mishap one) { return std::find(names.begin(), names.end(), name_of(one)) == names.end(); });
  if (all.empty()) throw std::invalid_argument("nothing of --mishap befalls these servers");
  return all;
}

std::string made_folder(std::string const& path) {
  std::filesystem::create_directory(path);
  return path;
}

std::string updates_folder(std::string const& folder) { return folder + "/updates"; }

std::string time_of_day() {
  using namespace std::chrono;
  auto const since = system_clock::now().time_since_epoch();
  auto const seconds = static_cast<std::time_t>(duration_cast<std::chrono::seconds>(since).count());
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::ostringstream text;
  text << std::put_time(&parts, "%H:%M:%S.") << std::setw(3) << std::setfill('0')
       << duration_cast<std::chrono::milliseconds>(since).count() % 1'000;
  return text.str();
}

// Permits whose lease is over come back when somebody asks. How many there are then is not told: see allowances.
void bring_back_permits(options const& run, client const& by) {
  for (auto const kind : run.kinds)
    if (torture_kinds()[kind].who == rule::permits && torture_kinds()[kind].leased)
      for (std::uint32_t lock = 0; lock < locks_of_a_kind; ++lock)
        static_cast<void>(by.get_permit_semaphore(lock_name(kind, lock)).available_permits());
}

std::vector<std::string> remains(std::vector<test::redis_server*> const& masters) {
  std::vector<std::string> found;
  for (auto const* one : masters) {
    auto admin = one->admin();
    auto const more = wrong_keys(admin);
    found.insert(found.end(), more.begin(), more.end());
    for (auto const* which : {"CHANNELS", "SHARDCHANNELS"})
      for (auto const& channel : admin.ok("PUBSUB", which).elements)
        if (!channel.text.starts_with("__sentinel__")) found.push_back("a subscription of " + channel.text);
  }
  return found;
}

}  // namespace

// What plays, in the order in which it has to be there.
class server_set::scene {
 public:
  explicit scene(server_set& of)
      : of_(of),
        dice_(simulation::mix(of.histories_.seed, 4711)),
        servers_(begin(of.histories_)),
        mishaps_(chosen(of.histories_, servers_->mishaps_by_weight())),
        writers_(with_server(of.histories_), of.folder_),
        counters_(with_server(of.updates_), updates_folder(of.folder_)) {
    for (auto* const one : {&writers_, &counters_})
      for (int i = 0; i < one->workers(); ++i) one->spawn(i);
    if (of.histories_.redisson) by_redisson_.emplace(of.histories_, servers_->uri(), of.counted_);
  }

  void play() {
    rest();
    while (!of_.with_.over && strike()) rest();
    of_.uninvited_ = servers_->uninvited();
    // Else a violation cannot be laid to the servers or to the library once they are gone.
    auto const folder = made_folder(servers_folder(of_.folder_));
    for (auto const& [name, text] : servers_->logs()) std::ofstream(folder + '/' + name) << text;
    write_lines(folder + "/strikes", strikes_);
  }

  // All is well; every worker takes each lock once more, and nothing is left of anybody.
  void finish() {
    by_redisson_.reset();
    of_.counting_.now_is = board::quit;
    of_.shared_.now_is = board::last_round;
    auto const lease = of_.histories_.lease.count() * ms;
    auto end = now() + 60 * second + lease * 10;
    while (writers_.running() + counters_.running() > 0 && now() < end) idle();
    writers_.end_overdue();
    counters_.end_overdue();
    auto accidents = writers_.accidents();
    accidents.insert(accidents.end(), counters_.accidents().begin(), counters_.accidents().end());
    write_lines(accidents_file(of_.folder_), accidents);
    std::vector<std::string> left;
    end = now() + 5 * lease;
    client const asks(servers_->uri());
    do {
      bring_back_permits(of_.histories_, asks);
      idle();
      left = remains(servers_->masters());
    } while (!left.empty() && now() < end);
    write_lines(left_behind_file(of_.folder_), left);
    std::lock_guard const guard(of_.mutex_);
    for (auto const& line : of_.stalls_) writers_.log().write(line);
  }

 private:
  options const& with_server(options& how) {
    how.more_servers = {servers_->uri()};
    return how;
  }

  static void idle() { std::this_thread::sleep_for(std::chrono::nanoseconds(look_every)); }

  void rest() {
    auto const most = of_.histories_.rest.count() * ms;
    auto const end = now() + dice_.between(most / 4, most);
    while (now() < end && !of_.with_.over) {
      writers_.running();
      counters_.running();
      idle();
    }
  }

  // False: there are to be no more.
  bool strike() {
    auto const what = mishaps_[dice_.below(mishaps_.size())];
    auto const most = of_.histories_.failovers;
    if (replaces(what) && of_.with_.begun++ >= most && most > 0) return false;
    record line;
    line.what = torture::what::fault;
    line.code = first_mishap + static_cast<std::uint32_t>(what);
    line.a = now();
    strikes_.push_back(time_of_day() + ' ' + name_of(what));
    bool const well = befall(what);
    line.b = now();
    writers_.log().write(line);
    return well;
  }

  bool befall(mishap what) {
    try {
      servers_->strike(what, dice_);
      std::lock_guard const guard(of_.mutex_);
      ++of_.struck_[name_of(what)];
    } catch (std::exception const& problem) {
      of_.note(std::string(name_of(what)) + ": " + problem.what());
      try {
        servers_->heal();
      } catch (std::exception const& still) {
        of_.note(std::string("given up: ") + still.what());
        return false;
      }
    }
    return true;
  }

  server_set& of_;
  simulation::dice dice_;
  std::unique_ptr<topology> servers_;
  std::vector<mishap> const mishaps_;  // the frequent ones several times
  stage writers_, counters_;
  std::optional<redisson_updates> by_redisson_;
  std::vector<std::string> strikes_;  // by the clock that servers write into their logs
};

server_set::server_set(options const& run, std::string const& folder, int number, agreement& with)
    : histories_(run),
      updates_(run),
      folder_(made_folder(folder)),
      number_(number),
      with_(with),
      shared_(map_board(board_file(folder_))),
      counting_(map_board(board_file(made_folder(updates_folder(folder_))))),
      counted_(map_ledger(updates_folder(folder_))) {
  histories_.seed = updates_.seed = simulation::mix(run.seed, static_cast<std::uint64_t>(number));
  updates_.updates = true;
  updates_.processes = 2;
}

void server_set::play() {
  try {
    scene on(*this);
    on.play();
    on.finish();
  } catch (std::exception const& problem) {
    note(problem.what());
  }
  found_ = check(read_run(folder_), {.counts = true, .holds = histories_.synced >= 0});
}

std::map<std::string, int> server_set::struck() const {
  std::lock_guard const guard(mutex_);
  return struck_;
}

std::vector<std::string> server_set::losses() const {
  std::vector<std::string> made;
  for (int i = 0; i < updates_.processes; ++i) {
    std::ifstream file(updates_folder(folder_) + "/worker-" + std::to_string(i) + ".errors");
    for (std::string line; std::getline(file, line);) made.push_back("set " + std::to_string(number_) + ": " + line);
  }
  return made;
}

void server_set::note_stall(std::int64_t begin, std::int64_t end) {
  record line;
  line.what = what::stall;
  line.a = begin;
  line.b = end;
  std::lock_guard const guard(mutex_);
  stalls_.push_back(line);
}

std::uint64_t server_set::sections() const {
  std::uint64_t made = 0;
  for (auto const& one : shared_.sections) made += one.load(std::memory_order_relaxed);
  return made;
}

}  // namespace latchkey::torture
