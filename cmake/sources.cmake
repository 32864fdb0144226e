# tally_glob(OUT PATTERN...): the files of a module, looked up again at each build; a module without files is an error.
function(tally_glob out)
    list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
    file(GLOB found CONFIGURE_DEPENDS ${ARGN})
    if(NOT found)
        message(FATAL_ERROR "no file matches ${ARGN}")
    endif()
    set(${out} ${found} PARENT_SCOPE)
endfunction()
