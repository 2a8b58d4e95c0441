"""P5: the Conan recipe. Without a remote it is read and exported, and refuses other systems. With LATCHKEY_LONG in the environment its
package is made and used, too, with Boost, hiredis and OpenSSL of the system (`platform_requires`); without optimisation: how it is made
does not depend on it.
"""

import json

from support import SOURCE, attempt, clean_environment, copy_of_tree, expect, fresh, in_long_form, options, place, python_tools, run, version

PROFILE = """include(default)
[settings]
build_type=Release
compiler.cppstd=20
[platform_requires]
boost/1.81.0
hiredis/1.2.0
openssl/3.0.15
[options]
latchkey/*:shared=True
[conf]
tools.cmake.cmaketoolchain:generator=Ninja
tools.build:cxxflags=["-O0"]
tools.cmake.cmaketoolchain:extra_variables={"CMAKE_UNITY_BUILD": "ON", "CMAKE_UNITY_BUILD_BATCH_SIZE": "24"}
"""


def create(conan, tree, folder):
    made = conan("create", tree, "-pr:a", folder / "platform.profile", "--test-folder", tree / "test/packages/conan")
    print(made[-3000:])
    packages = list((folder / "home/p/b").glob("latch*/p"))
    files = {path.relative_to(package).as_posix() for package in packages for path in package.rglob("*") if path.is_file()}
    wanted = {f"lib/liblatchkey.so.{version()}", "include/latchkey/latchkey.hpp", "include/latchkey/version.hpp", "licenses/LICENSE"}
    expect(wanted <= files, f"P5: the package lacks {wanted - files}: {sorted(files)}")
    expect(not any(name.endswith((".pc", "Config.cmake")) for name in files), "P5: Conan writes these files itself")


def main():
    given = options(__doc__)
    folder = fresh(place(given.build) / "conan")
    environment = clean_environment(CONAN_HOME=str(folder / "home"), CXX=given.compiler, NO_COLOR="1",
                                    PATH=f"{python_tools(given.build)}:/usr/local/bin:/usr/bin:/bin")
    tree = copy_of_tree(folder / "tree")

    def conan(*words, seconds=1400):
        return run("conan", *words, cwd=folder, env=environment, seconds=seconds)

    conan("remote", "disable", "*")
    conan("profile", "detect")
    (folder / "platform.profile").write_text(PROFILE, encoding="utf-8")

    said = conan("inspect", tree, "--format=json")
    about = json.loads(said[said.index("{"):])
    expect((about["name"], about["version"], about["license"]) == ("latchkey", version(), "Apache-2.0"), f"P5: inspect says {about}")
    conan("export", tree)
    listed = conan("list", "latchkey/*")
    expect(f"latchkey/{version()}" in listed, f"P5: not exported:\n{listed}")

    if in_long_form():
        create(conan, tree, folder)

    code, said = attempt("conan", "install", tree, "-pr:a", folder / "platform.profile", "-s:h", "os=FreeBSD", cwd=folder, env=environment)
    expect(code != 0 and "written for Linux alone" in said, f"P5: another system is not refused:\n{said}")
    expect(not (SOURCE / "CMakeUserPresets.json").exists() and not (tree / "CMakeUserPresets.json").exists(),
           "P5: the recipe writes into the tree")
    print(f"P5: Conan inspects, exports{', creates and uses' if in_long_form() else ''} latchkey/{version()} without a remote")


main()
