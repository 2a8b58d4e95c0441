#include <interop/support/history.hpp>

#include <algorithm>
#include <cctype>

namespace latchkey::test {

namespace {

// An id of a permit is told as 32 hexadecimal digits and stands on the server as 16 bytes.
bool is_permit_id(std::string const& text) {
  return text.size() == 32 && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c); });
}

std::string bytes_of(std::string const& digits) {
  std::string result;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    result += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return result;
}

}  // namespace

stage::stage(peer& a, peer& b, std::vector<redis_server*> servers)
    : actors_{{"a", &a}, {"b", &b}}, servers_(std::move(servers)) {
  learn(a, "A");
  learn(b, "B");
}

void stage::learn(peer& who, std::string const& letter) {
  // With more digits first.
  std::vector<std::pair<std::string, std::string>> numbers;
  for (std::string const worker : {"", "2", "3"}) {
    numbers.emplace_back(who.call("h" + worker, "owner", "lock", "any").value, letter + worker);
  }
  std::sort(numbers.begin(), numbers.end(),
            [](auto const& one, auto const& other) { return one.first.size() > other.first.size(); });
  for (auto const& id : who.ids()) {
    for (auto const& [number, name] : numbers) table_.emplace_back(id + ":" + number, name);
  }
  for (auto const& id : who.ids()) table_.emplace_back(id, letter + "-id");
}

std::vector<state_dump> stage::look() {
  std::vector<state_dump> result;
  for (auto* server : servers_) {
    auto admin = server->admin();
    result.push_back(dump(admin, table_));
  }
  return result;
}

std::vector<after_step> stage::play(history const& what, std::function<void(std::size_t)> const& watch) {
  for (auto* server : servers_) server->admin().ok("FLUSHALL");
  std::vector<after_step> result{{look(), {}}};
  for (std::size_t i = 0; i < what.steps.size(); ++i) {
    after_step after;
    after.answered = make(what, what.steps[i]);
    after.states = look();
    result.push_back(std::move(after));
    if (watch) watch(i);
  }
  return result;
}

std::string stage::make(history const& what, std::string const& step) {
  std::string answers;
  for (auto const& part : parts_of(step, ';')) {
    answers += (answers.empty() ? "" : ";") + make_part(what, part.substr(part.find_first_not_of(" ~!?")));
  }
  return answers;
}

std::string stage::make_part(history const& what, std::string const& part) {
  auto words = parts_of(part, ' ');
  if (words[0] == "pause") {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(words.at(1))));
    return {};
  }
  if (words[0] == "expire") {
    expire();
    return {};
  }
  return call(what, std::move(words));
}

// `expire`: whatever ends within a second.
void stage::expire() {
  auto const ends_soon = [&] {
    for (auto const& state : look()) {
      for (auto const& [key, one] : state.keys) {
        for (auto const& [of, instant] : one.instants) {
          if (of.empty() && instant - state.taken_ms < 1000) return true;
        }
      }
    }
    return false;
  };
  demand(wait_until([&] { return !ends_soon(); }), "a key does not end");
  // Its holder has known earlier, unless it is a sanitized one whose timer is late.
  if constexpr (slowness > 1) std::this_thread::sleep_for(30ms * slowness);
}

std::size_t stage::channels() {
  std::size_t result = 0;
  for (auto* server : servers_) result += server->admin().ok("PUBSUB", "CHANNELS").elements.size();
  return result;
}

std::string stage::call(history const& what, std::vector<std::string> words) {
  auto& actor = *actors_.at(words.at(0).substr(0, 1));
  auto const worker = "h" + words[0].substr(1);
  if (words.at(1) == "finish") return symbolic(peer::value_in(std::move(pending_.at(words[0])), words[0] + " finish"));
  bool const waits = words[1] == "begin";
  if (waits) words.erase(words.begin() + 1);
  auto kind = what.kind;
  auto operation = words[1];
  if (auto const dot = operation.find('.'); dot != std::string::npos) {
    kind = operation.substr(0, dot);
    operation = operation.substr(dot + 1);
  }
  std::vector<std::string> names{what.kind};
  for (int i = 1; i < what.names; ++i) names.push_back(what.kind + "-" + std::to_string(i));
  std::string line;
  for (std::size_t i = 2; i < words.size(); ++i) {
    auto const& word = words[i];
    line += (i == 2 ? "" : " ") + (word.starts_with('$') ? permits_.at(std::stoul(word.substr(1)) - 1) : word);
  }
  auto const listening = channels();
  auto future = line.empty() ? actor.start(worker, operation, kind, joined(names))
                             : actor.start(worker, operation, kind, joined(names), line);
  if (!waits) return symbolic(peer::value_in(std::move(future), operation));
  pending_[words[0]] = std::move(future);
  // Until it listens, if it does and if nobody did before; then it looks once more, of which nothing tells.
  wait_until([&] { return channels() > listening; }, 300ms);
  if (actor.library() == "Redisson") actor.call("observer", "await_blocked", kind, joined(names), worker, 300);
  std::this_thread::sleep_for(60ms);
  return {};
}

std::string stage::symbolic(answer const& got) {
  if (!got.ok) return "failed";
  if (!is_permit_id(got.value)) return got.value;
  permits_.push_back(got.value);
  auto const symbol = "permit" + std::to_string(permits_.size());
  table_.emplace_back(bytes_of(got.value), symbol);
  return symbol;
}

}  // namespace latchkey::test
