#pragma once

#include <latchkey/acquire_options.hpp>
#include <latchkey/client.hpp>
#include <latchkey/config.hpp>
#include <latchkey/count_down_latch.hpp>
#include <latchkey/distributed_lock.hpp>
#include <latchkey/error.hpp>
#include <latchkey/event.hpp>
#include <latchkey/lease.hpp>
#include <latchkey/owner.hpp>
#include <latchkey/permit.hpp>
#include <latchkey/permit_semaphore.hpp>
#include <latchkey/read_write_lock.hpp>
#include <latchkey/semaphore.hpp>
#include <latchkey/stats.hpp>
#include <latchkey/version.hpp>
#include <latchkey/with_lock.hpp>
