#include <latchkey/latchkey.hpp>

#include <iostream>

// Built by each of the three consumers. A client does not connect before it has to, so no server is needed; with an
// argument, a URI, it takes a lock there.
int main(int argc, char** argv) {
  latchkey::client client(argc > 1 ? argv[1] : "redis://127.0.0.1:6379");
  auto lock = client.get_lock("consumer");
  if (argc > 1 && !lock.acquire()) return 1;
  std::cout << LATCHKEY_VERSION << ' ' << lock.name() << '\n';
  return lock.name() == "consumer" ? 0 : 1;
}
