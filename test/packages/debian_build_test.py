"""P4: debian/ builds its packages from a tarball, and lintian has no complaint. Leaves in BUILD/test/packages/made: the
packages, the tree they were built in, and a prefix that the same build was installed into.

Without optimisation, to spare time: how a package is made does not depend on it. With LATCHKEY_LONG in the environment it is optimised.
"""

import os

from support import clean_environment, copy_of_tree, expect, fresh, only, options, place, run, version


def main():
    given = options(__doc__)
    folder = fresh(place(given.build) / "made")
    number = version()
    tree = copy_of_tree(folder / "tree")
    run("tar", "czf", folder / f"latchkey_{number}.orig.tar.gz", "--exclude=tree/debian", "--sort=name",
        "--transform", f"s,^tree,latchkey-{number},", "-C", folder, "tree")

    full = "LATCHKEY_LONG" in os.environ
    flags = "noautodbgsym parallel=2" + ("" if full else " noopt")
    environment = clean_environment(DEB_BUILD_OPTIONS=flags, **({} if full else {"DEB_CXXFLAGS_STRIP": "-g"}))
    said = run("dpkg-buildpackage", "-us", "-uc", cwd=tree, env=environment, seconds=2700)
    print(said[-2000:])
    names = sorted(path.name.split("_")[0] for path in folder.glob("*.deb"))
    expect(names == ["latchkey-tools", "liblatchkey-dev", "liblatchkey-testing-dev", "liblatchkey0.2"], f"P4: the packages are {names}")
    changes = only(folder.glob("*.changes"), "list of changes")
    print(run("lintian", "--allow-root", "--fail-on", "error,warning", changes))
    for package, depends in (("liblatchkey-dev", ["libboost1.81-dev", "libhiredis-dev", "libssl-dev",
                                                    f"liblatchkey0.2 (= {number}-1)"]),
                             ("liblatchkey-testing-dev", [f"liblatchkey-dev (= {number}-1)", "liblua5.1-0-dev"]),
                             ("liblatchkey0.2", ["libhiredis0.14", "libssl3", "libc6"]),
                             ("latchkey-tools", ["liblatchkey0.2", "libboost-program-options1.81.0"])):
        line = run("dpkg-deb", "-f", only(folder.glob(f"{package}_*.deb"), package), "Depends")
        for one in depends:
            expect(one in line, f"P4: {package} does not depend on {one}, but on {line}")
    run("cmake", "--install", only(tree.glob("obj-*"), "build tree"), "--prefix", folder / "prefix")
    print(f"P4: {', '.join(names)} {number}, without a remark of lintian")


main()
