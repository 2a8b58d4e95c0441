#pragma once

// Boost.Asio and Boost.System are part of this library's binary interface, and two versions of them in one program
// merge without a word. So every file that includes a header of ours refers to a symbol whose name says what that file
// was compiled with. The library defines one such symbol: its own. A file that was compiled with something else does
// not link, and the linker's message is the name.

#if __cplusplus < 202002L
#error "latchkey needs C++20 (-std=c++20) in every file of a program: Asio's types differ between standards"
#endif

#include <boost/version.hpp>

// Each adds a letter: T for BOOST_ASIO_DISABLE_THREADS, U where io_uring stands for epoll (then Asio itself defines
// BOOST_ASIO_HAS_IO_URING_AS_DEFAULT, in a header that not every file includes), H for
// BOOST_ASIO_ENABLE_HANDLER_TRACKING.
#if defined(BOOST_ASIO_DISABLE_THREADS)
#define LATCHKEY_DETAIL_GUARD_T _T
#else
#define LATCHKEY_DETAIL_GUARD_T
#endif
#if defined(BOOST_ASIO_HAS_IO_URING_AS_DEFAULT) || \
    (defined(BOOST_ASIO_HAS_IO_URING) && defined(BOOST_ASIO_DISABLE_EPOLL))
#define LATCHKEY_DETAIL_GUARD_U _U
#else
#define LATCHKEY_DETAIL_GUARD_U
#endif
#if defined(BOOST_ASIO_ENABLE_HANDLER_TRACKING)
#define LATCHKEY_DETAIL_GUARD_H _H
#else
#define LATCHKEY_DETAIL_GUARD_H
#endif

#define LATCHKEY_DETAIL_JOIN_THESE(words, version, t, u, h) words##version##t##u##h
#define LATCHKEY_DETAIL_JOIN(words, version, t, u, h) LATCHKEY_DETAIL_JOIN_THESE(words, version, t, u, h)
#define LATCHKEY_DETAIL_BOOST_GUARD                                                                                   \
  LATCHKEY_DETAIL_JOIN(this_program_and_liblatchkey_must_use_the_same_Boost_, BOOST_VERSION, LATCHKEY_DETAIL_GUARD_T, \
                       LATCHKEY_DETAIL_GUARD_U, LATCHKEY_DETAIL_GUARD_H)

// Also a linker that drops unused sections keeps the reference.
#if __has_cpp_attribute(gnu::retain)
#define LATCHKEY_DETAIL_KEPT [[gnu::used, gnu::retain]]
#else
#define LATCHKEY_DETAIL_KEPT [[gnu::used]]
#endif

namespace latchkey::detail {

extern __attribute__((visibility("default"))) char const LATCHKEY_DETAIL_BOOST_GUARD;

namespace {
LATCHKEY_DETAIL_KEPT char const* const boost_guard = &LATCHKEY_DETAIL_BOOST_GUARD;
}  // namespace

}  // namespace latchkey::detail

#undef LATCHKEY_DETAIL_KEPT
