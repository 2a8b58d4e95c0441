#pragma once

#include <support/unit/fake_server.hpp>

namespace latchkey::test {

// What the scripts of the semaphore, the permit semaphore and the latch do, written anew. Numbers stand in the store as
// a field `value` of their key; ids of permits as fields in hexadecimal digits, with the virtual time of their end.
void teach_semaphore(fake_server& server);
void teach_permit_semaphore(fake_server& server);
void teach_latch(fake_server& server);

}  // namespace latchkey::test
