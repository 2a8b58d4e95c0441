# What `cmake --install` gives: the library, its headers, a CMake package and a pkg-config file.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/latchkey")

install(TARGETS latchkey EXPORT latchkeyTargets FILE_SET HEADERS)
install(EXPORT latchkeyTargets NAMESPACE latchkey:: DESTINATION "${package_dir}")

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/latchkeyConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/latchkeyConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}"
                              NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/latchkeyConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/latchkeyConfig.cmake"
              "${PROJECT_BINARY_DIR}/latchkeyConfigVersion.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/Findhiredis.cmake"
        DESTINATION "${package_dir}")

# The prefix is found from the place of the .pc file, because `cmake --install --prefix` may choose another one later.
file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
set(pc_private_libs "")
if(NOT BUILD_SHARED_LIBS)
  # hiredis' own .pc file would put its folder, with names such as async.h, on the consumer's include path.
  get_filename_component(hiredis_dir "${hiredis_LIBRARY}" DIRECTORY)
  set(pc_private_libs " -L${hiredis_dir} -lhiredis")
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/latchkey.pc.in" "${PROJECT_BINARY_DIR}/latchkey.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/latchkey.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
