# tally_glob(OUT PATTERN...) lists the matching files, and updates the list at each build. No match is an error.
function(tally_glob out)
    list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
    file(GLOB found CONFIGURE_DEPENDS ${ARGN})
    if(NOT found)
        message(FATAL_ERROR "no file matches ${ARGN}")
    endif()
    set(${out} ${found} PARENT_SCOPE)
endfunction()
