#pragma once

#include <wire/script.hpp>

// The scripts of the permit semaphore: lists of items, as those of the reentrant lock. KEYS are name and
// timeouts, and the first of the ARGV is the channel. Times are the server's. Every script first takes back the permits
// whose leases have ended.
namespace latchkey::detail {

script const& permit_acquire();  // ARGV id, lease (0: none)
script const& permit_release();  // ARGV id
script const& permit_extend();   // ARGV id, lease
// Commands: ARGV argument, amount, lease, again, keep; answer {value, told} per item. The third of the KEYS is the mark
// of the request, unless it changes no number.
script const& permit_try_release();
script const& permit_update();
script const& permit_try_set();
script const& permit_set();
script const& permit_add();
script const& permit_available();
script const& permit_acquired();

}  // namespace latchkey::detail
