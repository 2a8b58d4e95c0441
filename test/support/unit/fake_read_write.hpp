#pragma once

#include <support/unit/fake_server.hpp>

namespace latchkey::test {

// Teaches a server what the scripts of the read/write lock do, written anew. The mode is the number 1 for read and 2
// for write; the key of each read hold is a hash with one field without a name.
void teach_read_write_lock(fake_server& server);

}  // namespace latchkey::test
