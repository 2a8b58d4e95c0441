#include <latchkey/latchkey.hpp>

// A plugin: a shared object that contains the static library.
extern "C" int use_latchkey() {
  latchkey::client client("redis://127.0.0.1:1");
  return client.get_lock("plugin").name() == "plugin" ? 42 : 1;
}
