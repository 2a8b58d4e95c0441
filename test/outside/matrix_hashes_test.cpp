#include <outside/matrix.hpp>
#include <support/catch.hpp>

using namespace latchkey::outside;

TEST_CASE("every way of taking with every way of ending, two deep: locks whose key is a hash of their own",
          "[outside][matrix][edge-1][edge-3]") {
  std::size_t const which = GENERATE(range(std::size_t{0}, std::size_t{5}));
  play(matrix_kinds()[which]);
}
