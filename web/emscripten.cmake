# What Debian's emscripten needs: exceptions, an old libc++ brought up to date, and node's modules where Debian keeps them.
add_compile_options(-fexceptions -include "${PROJECT_SOURCE_DIR}/web/old_libcxx.hpp")
target_compile_options(tally_flags INTERFACE -Wno-shorten-64-to-32) # a shape is checked against what memory can hold
add_link_options(-fexceptions)
if(NOT DEFINED ENV{NODE_PATH})
    set_property(GLOBAL PROPERTY RULE_LAUNCH_LINK "${CMAKE_COMMAND} -E env NODE_PATH=/usr/share/nodejs")
endif()
