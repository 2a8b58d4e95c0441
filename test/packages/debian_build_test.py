"""P4: debian/ builds its packages from a tarball, and lintian has no complaint. Leaves in BUILD/test/packages/made: the
packages, the tree they were built in, and a prefix that the same build was installed into.

Without optimisation, to spare time: how a package is made does not depend on it. Nor does lintian look at the packages with static
libraries, in which it reads every symbol. With LATCHKEY_LONG in the environment, both are as for a release.
"""

from support import clean_environment, copy_of_tree, expect, fresh, in_long_form, only, options, place, run, version


def main():
    given = options(__doc__)
    folder = fresh(place(given.build) / "made")
    number = version()
    tree = copy_of_tree(folder / "tree")
    run("tar", "czf", folder / f"latchkey_{number}.orig.tar.gz", "--exclude=tree/debian", "--sort=name",
        "--transform", f"s,^tree,latchkey-{number},", "-C", folder, "tree")

    flags = "noautodbgsym parallel=2"
    environment = clean_environment(DEB_BUILD_OPTIONS=flags) if in_long_form() else clean_environment(
        DEB_BUILD_OPTIONS=f"{flags} noopt", DEB_CXXFLAGS_STRIP="-g", DPKG_DEB_COMPRESSOR_TYPE="gzip")
    said = run("dpkg-buildpackage", "-us", "-uc", cwd=tree, env=environment, seconds=2700)
    print(said[-2000:])
    names = sorted(path.name.split("_")[0] for path in folder.glob("*.deb"))
    expect(names == ["latchkey-tools", "liblatchkey-dev", "liblatchkey-testing-dev", "liblatchkey0.2"], f"P4: the packages are {names}")
    looked_at = folder.glob("*.changes") if in_long_form() else [*folder.glob("*.dsc"), *folder.glob("*latchkey0*.deb"), *folder.glob("*tools*.deb")]
    print(run("lintian", "--allow-root", "--fail-on", "error,warning", *looked_at))
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
