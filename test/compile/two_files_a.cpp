#include <latchkey/latchkey.hpp>

// With two_files_b.cpp: a program of two files that both include everything links, so no header defines a symbol twice.
bool other_file();

int main() { return other_file() || latchkey::owner::make() == latchkey::owner::make() ? 1 : 0; }
