#include <support/host_names.hpp>

#include <dlfcn.h>
#include <netdb.h>

#include <condition_variable>
#include <map>
#include <mutex>

namespace latchkey::test {

namespace {

struct table {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::vector<std::string>> names;  // no addresses: hangs
  int in_vain = 0;
};

table& the_table() {
  static table& the_one = *new table;
  return the_one;
}

std::vector<std::string> addresses_of(char const* name) {
  if (name == nullptr) return {};
  auto& all = the_table();
  std::unique_lock guard(all.mutex);
  auto const hangs = [&] { return all.names.contains(name) && all.names[name].empty(); };
  if (hangs()) {
    ++all.in_vain;
    all.changed.wait(guard, [&] { return !hangs(); });
  }
  auto const found = all.names.find(name);
  return found == all.names.end() ? std::vector<std::string>() : found->second;
}

using lookup = int (*)(char const*, char const*, addrinfo const*, addrinfo**);

lookup system_lookup() {
  static auto const found = reinterpret_cast<lookup>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return found;
}

}  // namespace

host_names::~host_names() {
  auto& all = the_table();
  std::lock_guard guard(all.mutex);
  all.names.clear();
  all.in_vain = 0;
  all.changed.notify_all();
}

void host_names::set(std::string const& name, std::vector<std::string> addresses) {
  auto& all = the_table();
  std::lock_guard guard(all.mutex);
  all.names[name] = std::move(addresses);
  all.changed.notify_all();
}

void host_names::hang(std::string const& name) { set(name, {}); }

int host_names::asked_in_vain() {
  auto& all = the_table();
  std::lock_guard guard(all.mutex);
  return all.in_vain;
}

}  // namespace latchkey::test

// The answers for several addresses are joined into one list, which freeaddrinfo frees piece by piece.
extern "C" __attribute__((visibility("default"))) int getaddrinfo(char const* name, char const* service,
                                                                  addrinfo const* hints, addrinfo** result) {
  using namespace latchkey::test;
  auto const addresses = addresses_of(name);
  if (addresses.empty()) return system_lookup()(name, service, hints, result);
  addrinfo** tail = result;
  *tail = nullptr;
  for (auto const& one : addresses) {
    int const failed = system_lookup()(one.c_str(), service, hints, tail);
    if (failed != 0) return failed;
    while (*tail != nullptr) tail = &(*tail)->ai_next;
  }
  return 0;
}
