#include <latchkey/latchkey.hpp>

bool other_file();

bool other_file() { return latchkey::lease().held(); }
