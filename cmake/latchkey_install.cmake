# What `cmake --install` gives, in components: runtime (the shared library), dev (headers, static library, CMake package,
# pkg-config file), testing (latchkey::testing) and tools (the program latchkey, by tools/CMakeLists.txt).
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/latchkey")

# latchkey_install_library(TARGET static|shared): both may be installed into one prefix.
function(latchkey_install_library target linkage)
  install(TARGETS ${target} EXPORT latchkey-${linkage}
    LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev
    ARCHIVE COMPONENT dev
    FILE_SET HEADERS COMPONENT dev)
  install(EXPORT latchkey-${linkage} NAMESPACE latchkey:: FILE latchkey-${linkage}-targets.cmake
    DESTINATION "${package_dir}" COMPONENT dev)
endfunction()

if(BUILD_SHARED_LIBS)
  latchkey_install_library(latchkey shared)
  if(LATCHKEY_STATIC_TOO)
    latchkey_install_library(latchkey_static static)
  endif()
else()
  latchkey_install_library(latchkey static)
endif()

# Why there is no component testing, if it was not built.
set(latchkey_no_testing "")
if(TARGET latchkey_testing)
  install(TARGETS latchkey_testing EXPORT latchkey-testing
    ARCHIVE COMPONENT testing
    FILE_SET HEADERS COMPONENT testing)
  install(EXPORT latchkey-testing NAMESPACE latchkey:: FILE latchkey-testing-targets.cmake
    DESTINATION "${package_dir}" COMPONENT testing)
elseif(NOT LATCHKEY_TESTING)
  set(latchkey_no_testing "this latchkey was built with LATCHKEY_TESTING=OFF")
else()
  set(latchkey_no_testing "this latchkey was built where there was no Lua 5.1 (Debian: liblua5.1-0-dev)")
endif()

# The version that the headers were compiled with, 1.81.0 for 108100.
set(boost_version "${Boost_VERSION_STRING}")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/latchkeyConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/latchkeyConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}"
                              NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/latchkeyConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/latchkeyConfig.cmake"
              "${PROJECT_BINARY_DIR}/latchkeyConfigVersion.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/Findhiredis.cmake"
        DESTINATION "${package_dir}" COMPONENT dev)

# The prefix is found from the place of the .pc file, because `cmake --install --prefix` may choose another one later.
file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
# hiredis' own .pc file would put its folder, with names such as async.h, on the consumer's include path.
get_filename_component(hiredis_dir "${hiredis_LIBRARY}" DIRECTORY)
set(pc_private_libs " -L${hiredis_dir} -lhiredis -lssl -lcrypto")
# Where the static library is the only one, it is linked without --static, too.
set(pc_libs "")
if(NOT BUILD_SHARED_LIBS)
  set(pc_libs "${pc_private_libs}")
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/latchkey.pc.in" "${PROJECT_BINARY_DIR}/latchkey.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/latchkey.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)

set(components runtime dev tools)
if(TARGET latchkey_testing)
  list(APPEND components testing)
endif()
foreach(component IN LISTS components)
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT ${component})
endforeach()
