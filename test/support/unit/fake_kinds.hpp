#pragma once

#include <support/unit/fake_server.hpp>

namespace latchkey::test {

// Teaches a server what the scripts of the reentrant lock's relatives do: the effect of the reentrant lock's, and what
// is different. Their calls show in the log by these names with `spin_`, `fenced_` or `plain_` in front.
void teach_spin(fake_server& server);
// The counter of the lock k stands in the store as redisson_lock_token:{k}/value.
void teach_fenced(fake_server& server);
// A string is stored as a hash whose one field is the value.
void teach_plain(fake_server& server);

}  // namespace latchkey::test
