// Boost.JSON, compiled here, so that no further library is needed.
#include <boost/json/src.hpp>
