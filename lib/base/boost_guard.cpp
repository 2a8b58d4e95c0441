#include <latchkey/boost_guard.hpp>

// Everything else of the library that may include Asio is compiled with the same settings as this file.
char const latchkey::detail::LATCHKEY_DETAIL_BOOST_GUARD = 0;
