# An overlay port that builds the tree in which it lies:
#   vcpkg install latchkey --overlay-ports=contrib/vcpkg/ports
# What is tried of it, offline: test/packages/vcpkg_test.py reads vcpkg.json, runs this file with vcpkg's functions replaced by
# ones that note their arguments, and asks whether CMakeLists.txt has every option that is passed. vcpkg itself was never run.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS feature_options FEATURES tools LATCHKEY_TOOLS)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${feature_options}
    -DBUILD_TESTING=OFF
    -DLATCHKEY_TESTS=OFF
    -DLATCHKEY_TESTING=OFF
    -DLATCHKEY_EXAMPLES=OFF
    -DLATCHKEY_BENCH=OFF
    -DLATCHKEY_INSTALL=ON
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME latchkey CONFIG_PATH lib/cmake/latchkey)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES latchkey AUTO_CLEAN)
endif()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
