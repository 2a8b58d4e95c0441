#pragma once

// Catch2 2.13 and 3.x keep their headers in different places. Tests include this file instead.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
