"""P5: the port for vcpkg, as far as that can be tried without vcpkg: the file of names and versions, and the options that the port
passes, which CMakeLists.txt must have. vcpkg itself is not run.
"""

import json
import re
import tempfile

from support import SOURCE, expect, options, pathlib, run, version

PORT = SOURCE / "contrib/vcpkg/ports/latchkey"
# vcpkg's functions, which here say what they are called with.
STUBS = """
cmake_minimum_required(VERSION 3.24)
set(CURRENT_PACKAGES_DIR "{place}/packages")
set(FEATURES {features})
function(vcpkg_check_features)
  cmake_parse_arguments(arg "" "OUT_FEATURE_OPTIONS" "FEATURES" ${{ARGN}})
  list(POP_FRONT arg_FEATURES feature option)
  set(value OFF)
  if(feature IN_LIST FEATURES)
    set(value ON)
  endif()
  set(${{arg_OUT_FEATURE_OPTIONS}} "-D${{option}}=${{value}}" PARENT_SCOPE)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(arg "" "SOURCE_PATH" "OPTIONS" ${{ARGN}})
  message(STATUS "source ${{arg_SOURCE_PATH}}")
  foreach(one IN LISTS arg_OPTIONS)
    message(STATUS "option ${{one}}")
  endforeach()
endfunction()
foreach(name IN ITEMS cmake_install cmake_config_fixup fixup_pkgconfig copy_tools)
  cmake_language(EVAL CODE "function(vcpkg_${{name}})\\n message(STATUS \\"called ${{name}} \\${{ARGN}}\\")\\n endfunction()")
endforeach()
function(vcpkg_install_copyright)
  cmake_parse_arguments(arg "" "" "FILE_LIST" ${{ARGN}})
  if(NOT EXISTS "${{arg_FILE_LIST}}")
    message(FATAL_ERROR "there is no ${{arg_FILE_LIST}}")
  endif()
endfunction()
include("{port}/portfile.cmake")
"""


def played(features):
    """(options, calls) of the port file."""
    with tempfile.TemporaryDirectory() as place:
        script = pathlib.Path(place, "play.cmake")
        script.write_text(STUBS.format(place=place, features=features, port=PORT), encoding="utf-8")
        said = run("cmake", "-P", script)
    [source] = re.findall(r"-- source (.*)", said)
    expect(pathlib.Path(source) == SOURCE, f"P5: the port builds {source}")
    return dict(re.findall(r"-- option -D(\w+)=(\w+)", said)), re.findall(r"-- called (\w+)", said)


def names(about):
    for one in about:
        yield one if isinstance(one, str) else one["name"]


def main():
    options(__doc__)
    about = json.loads((PORT / "vcpkg.json").read_text(encoding="utf-8"))
    expect(about["name"] == PORT.name == "latchkey", f"P5: the port is called {about['name']}")
    expect(about["version-semver"] == version(), f"P5: vcpkg.json says {about['version-semver']}, CMakeLists.txt {version()}")
    expect((about["license"], about["supports"]) == ("Apache-2.0", "linux"), "P5: licence or system differ")
    needed = set(names(about["dependencies"]))
    tools = set(names(about["features"]["tools"]["dependencies"]))
    expect(all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in needed | tools), f"P5: no names: {needed | tools}")
    sources = [path.read_text(encoding="utf-8") for folder in ("include", "lib", "tools") for path in (SOURCE / folder).rglob("*.[ch]pp")]
    used = {f"boost-{name.replace('_', '-')}" for text in sources for name in re.findall(r"#include <boost/([a-z_]+)[/.]", text)}
    known = needed | tools | {"boost-version"}  # which is a header of Boost.Config, as every part of Boost needs it
    expect(used <= known, f"P5: vcpkg.json does not name {sorted(used - known)}")
    expect({"hiredis", "openssl", "vcpkg-cmake", "vcpkg-cmake-config"} <= needed, f"P5: it needs only {needed}")

    build = (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8")
    there = set(re.findall(r"^option\((\w+)", build, re.M)) | {"BUILD_TESTING", "LATCHKEY_TESTS"}
    for features, tool in (("core", "OFF"), ("core tools", "ON")):
        passed, called = played(features)
        expect(set(passed) <= there, f"P5: CMakeLists.txt has no {sorted(set(passed) - there)}")
        expect(passed.get("LATCHKEY_TOOLS") == tool, f"P5: with the features {features} the program is {passed.get('LATCHKEY_TOOLS')}")
        expect(passed["BUILD_TESTING"] == "OFF" and passed["LATCHKEY_INSTALL"] == "ON", f"P5: the port passes {passed}")
        expect(called[:3] == ["cmake_install", "cmake_config_fixup", "fixup_pkgconfig"], f"P5: the port calls {called}")
        expect(("copy_tools" in called) == (tool == "ON"), f"P5: the port calls {called}")
    print(f"P5: the port names {len(needed | tools)} packages, and passes {len(passed)} options that there are")


main()
