# Conveniences of our own build. A program that adds us as a subfolder decides all of this itself.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(LATCHKEY_CCACHE ccache)
mark_as_advanced(LATCHKEY_CCACHE)
if(LATCHKEY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What one clone of the same sources has compiled serves the next: nothing in it depends on where they lie.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${LATCHKEY_CCACHE}")
  # The sources of a unity build are named by their whole paths, and __FILE__ would say where they lie.
  add_compile_options("-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
endif()

# What looks at memory is called, and not inlined: that compiles in a fifth less time.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("SHELL:-mllvm -asan-instrumentation-with-call-threshold=0")
endif()
