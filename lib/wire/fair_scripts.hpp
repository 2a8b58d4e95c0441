#pragma once

#include <cstdint>
#include <wire/script.hpp>

// The scripts of the fair lock. Each item has three KEYS - the lock's name, the list of waiters, the zset of their
// scores -, begins its ARGV with the channel without its owner, and answers as the reentrant lock's items do.
namespace latchkey::detail {

script const& fair_acquire();       // ARGV field, target, lease, line time, 1: enters the queue
script const& fair_release();       // ARGV field, target, lease of what stays
script const& fair_hand_off();      // ARGV from, to, lease, line time of the new owner, 1: enters; answers {old, new}
script const& fair_force_unlock();  // no more ARGV
script const& fair_leave();         // ARGV field, line time

}  // namespace latchkey::detail
