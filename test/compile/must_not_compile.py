"""Code that must not compile does not, and for the reason that is meant; code close to it does."""

import concurrent.futures
import sys

from compiler import Compiler

PROGRAM = """
#include <latchkey/latchkey.hpp>
#include <boost/asio/detached.hpp>
#include <chrono>
#include <utility>
using namespace std::chrono_literals;
void body(latchkey::client& client, latchkey::distributed_lock lock, latchkey::lease held) {{
  {}
  (void)client; (void)lock; (void)held;
}}
"""

# What is close to the cases below and must compile, in one program.
CONTROL = """
  lock.lock(500ms);
  lock.lock(2s);
  lock.lock(500us);
  (void)lock.try_lock(5s, 10s);
  (void)lock.try_lock(std::chrono::duration<double>(0.5), 1.5s);
  (void)lock.acquire({.wait = 1.5s, .lease = 800us});
  (void)lock.try_lock_for(500us);
  (void)lock.try_lock_for(std::chrono::duration<double>(0.5));
  auto me = latchkey::owner::make();
  lock.async_lock(me, 5s, [](latchkey::error_code) {});
  latchkey::lease other = std::move(held);
  other = std::move(held);
  auto run = [](latchkey::lease&) -> latchkey::asio::awaitable<void> { co_return; };
  latchkey::with_lock(lock, run, latchkey::asio::detached);
  latchkey::with_lock(lock, latchkey::acquire_options{}, run, [](std::exception_ptr) {});
  latchkey::with_lock(lock, {.wait = 1s}, run, latchkey::asio::detached);
  latchkey::client moved = std::move(client);
"""

# A name, a line, and the words of which one must be in the compiler's error.
NO_CONVERSION = ("could not convert", "cannot convert", "no matching")
NO_BODY = ("the body of with_lock takes a lease& and returns a boost::asio::awaitable",)
NO_DEFAULT = ("no matching", "no default")
CASES = [
    ("a lease without a unit", "lock.lock(500);", NO_CONVERSION),
    ("a wait without a unit", "(void)lock.try_lock(0.5);", NO_CONVERSION),
    ("a wait without a unit in options", "(void)lock.acquire({.wait = 500});", NO_CONVERSION),
    ("an owner from nothing", "latchkey::owner me; (void)me;", NO_DEFAULT),
    ("an owner from a number", "latchkey::owner me = 7; (void)me;", ("conversion from", "no viable", "private")),
    ("a second lease of one hold", "latchkey::lease other = held;", ("deleted",)),
    ("a second lease by assignment", "latchkey::lease other; other = held;", ("deleted",)),
    ("a lock without a client", "latchkey::distributed_lock other; (void)other;", NO_DEFAULT),
    ("a second client by copy", "latchkey::client other = client;", ("deleted",)),
    ("an asynchronous lock without an owner", "lock.async_lock([](latchkey::error_code) {});", ("no matching",)),
    ("a body of with_lock that returns nothing", "latchkey::with_lock(lock, [](latchkey::lease&) {});", NO_BODY),
    ("a body of with_lock that takes no lease",
     "latchkey::with_lock(lock, {.wait = 1s}, []() -> latchkey::asio::awaitable<void> { co_return; });", NO_BODY),
    ("a body of with_lock that returns a value, with a token",
     "latchkey::with_lock(lock, latchkey::acquire_options{}, [](latchkey::lease&) { return 1; }, "
     "latchkey::asio::detached);", NO_BODY),
    ("a body of with_lock that is no function", "latchkey::with_lock(lock, 7, latchkey::asio::detached);", NO_BODY),
    ("a handler of the wrong shape", "lock.async_lock(latchkey::owner::make(), [](int, int, int) {});",
     ("no matching",)),
]


def complaint(compiled, text, words):
    errors = "\n".join(row for row in text.splitlines() if "error:" in row)
    if compiled:
        return "should not compile"
    if not any(word in errors for word in words):
        return f"is refused for another reason:\n{errors}"
    return None


def main():
    compiler = Compiler(__doc__)
    good, text = compiler.run(PROGRAM.format(CONTROL))
    if not good:
        sys.exit(f"the control should compile:\n{text}")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda case: compiler.run(PROGRAM.format(case[1])), CASES))
    bad = 0
    for (name, line, words), result in zip(CASES, results):
        if why := complaint(*result, words):
            bad += 1
            print(f"{name}: {line}\n  {why}")
    print(f"{len(CASES)} cases, {bad} bad")
    if bad:
        sys.exit(1)


main()
