"""Including latchkey.hpp costs little more than the part of Asio that a program with coroutines includes anyway."""

import statistics
import sys

from compiler import Compiler

OURS = "#include <latchkey/latchkey.hpp>\n"
ASIO = "#include <boost/asio/awaitable.hpp>\n#include <boost/asio/ip/tcp.hpp>\n"
LIMIT = 1.25
ROUNDS = 5


def main():
    compiler = Compiler(__doc__)
    compiler.cpu_seconds(OURS + ASIO)  # reads the files once
    ours, asio = [], []
    for _ in range(ROUNDS):
        ours.append(compiler.cpu_seconds(OURS))
        asio.append(compiler.cpu_seconds(ASIO))
    ratio = statistics.median(ours) / statistics.median(asio)
    print(f"latchkey.hpp {statistics.median(ours):.2f} s, awaitable.hpp + ip/tcp.hpp {statistics.median(asio):.2f} s: "
          f"ratio {ratio:.2f}, at most {LIMIT}")
    if ratio > LIMIT:
        sys.exit(1)


main()
