# Where this may be built. What other systems lack stands in few small files; none of the replacements has been tried.
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(latchkey_port_words
    "latchkey is written for Linux alone, and this is ${CMAKE_SYSTEM_NAME}. What has to be replaced stands in "
    "docs/porting.md, file by file.")
  if(NOT LATCHKEY_EXPERIMENTAL_PORT)
    message(FATAL_ERROR ${latchkey_port_words}
      " -DLATCHKEY_EXPERIMENTAL_PORT=ON configures nevertheless, for work on a port.")
  endif()
  message(WARNING ${latchkey_port_words} " Going on, because of LATCHKEY_EXPERIMENTAL_PORT.")
endif()
