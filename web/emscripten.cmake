# Options for Debian's emscripten: exceptions, additions to an old libc++, and the path of Debian's node modules.
add_compile_options(-fexceptions -include "${PROJECT_SOURCE_DIR}/web/old_libcxx.hpp")
target_compile_options(tally_flags INTERFACE -Wno-shorten-64-to-32) # shapes are checked against the size of memory
add_link_options(-fexceptions)
if(NOT DEFINED ENV{NODE_PATH})
    set_property(GLOBAL PROPERTY RULE_LAUNCH_LINK "${CMAKE_COMMAND} -E env NODE_PATH=/usr/share/nodejs")
endif()
