// What `embedded:` leaves in the folder for temporary files.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/child_process.hpp>
#include <support/raw_redis.hpp>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

using namespace latchkey;
using namespace latchkey::outside;
using latchkey::test::child_process;
using latchkey::test::temp_folder;
using latchkey::test::wait_until;

namespace {

// TMPDIR is another, as long as this lives.
class other_tmpdir {
 public:
  other_tmpdir() {
    if (char const* const known = std::getenv("TMPDIR")) before_ = known;
    ::setenv("TMPDIR", folder_.path().c_str(), 1);
  }
  ~other_tmpdir() {
    if (before_)
      ::setenv("TMPDIR", before_->c_str(), 1);
    else
      ::unsetenv("TMPDIR");
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (auto const& one : std::filesystem::directory_iterator(folder_.path())) all.insert(one.path().filename());
    return all;
  }
  std::filesystem::path path() const { return folder_.path(); }

 private:
  temp_folder folder_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE(
    "a killed program with embedded: leaves its folder to the next one, who leaves those alone that have an owner",
    "[outside][edge-32]") {
  other_tmpdir const tmp;
  auto const with_server = [](child_process::channel& parent) {
    client own("embedded:");
    own.get_lock("name").lock();
    parent.say("there");
    parent.hear(1min);
    return 0;
  };
  child_process killed(with_server), alive(with_server);
  REQUIRE(killed.talk().hear() == "there");
  auto const first = tmp.names();
  REQUIRE(alive.talk().hear() == "there");
  REQUIRE(tmp.names().size() == 2);
  killed.send_signal(SIGKILL);
  killed.wait();

  // Of somebody else, by the same scheme of names; and one whose maker did not come far.
  std::filesystem::create_directory(tmp.path() / "latchkey-others");
  std::filesystem::create_directory(tmp.path() / "latchkey-begun0");
  std::ofstream(tmp.path() / "latchkey-others" / "file") << "theirs";
  std::filesystem::create_directory_symlink(tmp.path() / "latchkey-others", tmp.path() / "latchkey-link00");
  std::optional<client> next(std::in_place, "embedded:");
  auto names = tmp.names();
  CHECK(names.size() == 4);  // of the living, of the next, and the two of others
  CHECK(names.contains("latchkey-others"));
  CHECK(names.contains("latchkey-link00"));
  CHECK_FALSE(names.contains("latchkey-begun0"));
  CHECK(next->get_lock("name").try_lock());
  alive.talk().say("go");
  CHECK(alive.wait() == 0);
  next.reset();
  CHECK(tmp.names() == std::set<std::string>{"latchkey-others", "latchkey-link00"});
}
