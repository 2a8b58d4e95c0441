"""P2: position-independent objects, the name of the shared library, components, both libraries in one prefix, pkg-config."""

import ctypes
import itertools

from support import HERE, clean_environment, configure, expect, fresh, made, only, options, place, refused, run, version


def installed(build_tree, folder, component=None):
    fresh(folder)
    run("cmake", "--install", build_tree, "--prefix", folder, *(["--component", component] if component else []))
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def components(build_tree, folder):
    parts = {name: installed(build_tree, folder / name, name) for name in ("runtime", "dev", "tools", "testing")}
    everything = installed(build_tree, folder / "all")
    licence = {name for name in everything if name.endswith("/LICENSE")}
    expect(set().union(*parts.values()) == everything, f"P2: in no component: {everything - set().union(*parts.values())}")
    for one, other in itertools.combinations(parts, 2):
        expect(parts[one] & parts[other] <= licence, f"P2: in {one} and {other}: {parts[one] & parts[other] - licence}")
    number = version()
    so_number = ".".join(number.split(".")[:2]) if number.startswith("0.") else number.split(".")[0]
    names = {name.rsplit("/", 1)[-1] for name in parts["runtime"] - licence}
    expect(names == {f"liblatchkey.so.{number}", f"liblatchkey.so.{so_number}"}, f"P2: the component runtime has {names}")
    names = {name.rsplit("/", 1)[-1] for name in parts["tools"] - licence}
    expect({"latchkey", "latchkey.1"} <= names and not any(".so" in name for name in names), f"P2: tools has {names}")
    names = {name.rsplit("/", 1)[-1] for name in parts["dev"]}
    expect({"liblatchkey.so", "liblatchkey.a", "client.hpp", "version.hpp", "latchkey.pc", "latchkeyConfig.cmake",
            "latchkey-static-targets.cmake", "latchkey-shared-targets.cmake"} <= names, f"P2: dev has {names}")
    names = {name.rsplit("/", 1)[-1] for name in parts["testing"] - licence}
    expect({"liblatchkey_testing.a", "latchkey-testing-targets.cmake"} <= names and
           "include/latchkey/testing/server.hpp" in parts["testing"], f"P2: testing has {parts['testing']}")
    library = only((folder / "runtime").rglob(f"liblatchkey.so.{number}"), "shared library")
    said = run("readelf", "-d", library)
    expect(f"soname: [liblatchkey.so.{so_number}]" in said, f"P2: the shared library calls itself something else:\n{said}")
    environment = clean_environment(LD_LIBRARY_PATH=str(library.parent))
    expect(number in run(folder / "all/bin/latchkey", "--version", env=environment), "P2: the program has another version")


def plugin(given, prefix, folder):
    archive = only(prefix.rglob("liblatchkey.a"), "static library")
    fresh(folder)
    run(given.compiler, "-std=c++20", "-fPIC", "-shared", "-pthread", f"-I{prefix / 'include'}", HERE / "plugin.cpp", archive,
        "-lhiredis", "-lssl", "-lcrypto", "-Wl,-z,defs", "-o", folder / "plugin.so")
    answer = ctypes.CDLL(str(folder / "plugin.so")).use_latchkey()
    expect(answer == 42, f"P2: the plugin says {answer}")


def needs_library(program):
    return "liblatchkey.so" in run("readelf", "-d", program)


def find_package(given, prefix, folder):
    # The object is the same each time: it is compiled once, and linked again.
    fresh(folder)

    def words(wanted, *settings):
        (folder / "CMakeCache.txt").unlink(missing_ok=True)
        return configure(HERE / "linkage", folder, given.compiler, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DWANTED={wanted}", *settings)

    for wanted, settings, shared in (("shared", [], True), ("static", [], False), ("", [], True),
                                     ("", ["-Dlatchkey_SHARED_LIBS=OFF"], False), ("", ["-DBUILD_SHARED_LIBS=OFF"], False),
                                     ("static", ["-Dlatchkey_SHARED_LIBS=ON"], False)):
        run(*words(wanted, *settings))
        run("cmake", "--build", folder)
        run(folder / "linkage")
        expect(needs_library(folder / "linkage") == shared, f"P2: COMPONENTS {wanted} {settings} linked the other library")
    refused(["the components shared and static exclude each other"], *words("shared;static"))
    refused(["the component nonsense was not installed into"], *words("nonsense"))
    fresh(folder)
    for linkage in ("shared", "static"):
        run(*configure(HERE.parent / "testing/consumer", folder, given.compiler, f"-DCMAKE_PREFIX_PATH={prefix}",
                       f"-DLINKAGE={linkage}"))
        run("cmake", "--build", folder)
        run(folder / "consumer")


def pkg_config(given, prefix, folder):
    where = only(prefix.rglob("latchkey.pc"), "pkg-config file").parent
    environment = {"PKG_CONFIG_PATH": str(where), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    plain = run("pkg-config", "--cflags", "--libs", "latchkey", env=environment).split()
    private = {"-lhiredis", "-lssl", "-lcrypto"}
    expect(not private & set(plain), f"P2: these are not private: {private & set(plain)}")
    static = run("pkg-config", "--static", "--cflags", "--libs", "latchkey", env=environment).split()
    expect(private <= set(static), f"P2: --static forgets {private - set(static)}: {static}")
    fresh(folder)
    source = HERE / "linkage/linkage.cpp"
    run(given.compiler, "-std=c++20", source, *plain, f"-Wl,-rpath,{where.parent}", "-o", folder / "shared")
    run(given.compiler, "-std=c++20", source, "-Wl,-Bstatic", *[word for word in static if word == "-llatchkey" or word[:2] != "-l"],
        "-Wl,-Bdynamic", *[word for word in static if word[:2] == "-l" and word != "-llatchkey"], "-o", folder / "static")
    expect(needs_library(folder / "shared") and not needs_library(folder / "static"), "P2: pkg-config linked the other library")
    run(folder / "shared")
    run(folder / "static")


def main():
    given = options(__doc__)
    tree, prefix = made(given.build)
    folder = place(given.build) / "components"
    components(only(tree.glob("obj-*"), "build tree"), folder / "parts")
    plugin(given, prefix, folder / "plugin")
    find_package(given, prefix, folder / "find_package")
    pkg_config(given, prefix, folder / "pkg-config")
    print("P2: four components; a plugin with the static library; both libraries in one prefix, by CMake and pkg-config")


main()
