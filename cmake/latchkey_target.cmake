# What every target of ours is built with, and no consumer: warnings, no language extensions, hidden symbols.
function(latchkey_target name)
  set_target_properties(${name} PROPERTIES
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
  # The same sources in two folders give the same bytes. A build for debugging keeps the paths that a debugger looks for.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release,MinSizeRel>:
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}=latchkey -ffile-prefix-map=${PROJECT_BINARY_DIR}=latchkey/build>)
  if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Several source files make one: each one's names hide those of the others, and are those of a header.
    target_compile_options(${name} PRIVATE -Wno-shadow -Wno-subobject-linkage)
  endif()
  if(CMAKE_COMPILE_WARNING_AS_ERROR AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 takes the frames of Asio's coroutines, once inlined, for memory that the wrong function frees.
    target_compile_options(${name} PRIVATE -Wno-error=mismatched-new-delete)
  endif()
endfunction()

# What becomes part of a library: also a static one may be linked into a plugin.
function(latchkey_library name)
  latchkey_target(${name})
  if(NOT DEFINED CMAKE_POSITION_INDEPENDENT_CODE)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
endfunction()

# A program of ours (test, example, benchmark) on top of the library.
function(latchkey_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE latchkey::latchkey)
  latchkey_target(${name})
endfunction()
