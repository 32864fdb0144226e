# Rooms: each folder of src/ sees the rooms that are named to it, and an include of tally/ and any other does not compile.

# tally_room_path(OUT NAME ROOM...): an include path for NAME, in which tally/ROOM/ leads to src/ROOM/ for these rooms only.
function(tally_room_path out name)
    set(path "${PROJECT_BINARY_DIR}/rooms/${name}")
    file(MAKE_DIRECTORY "${path}/tally")
    file(GLOB links RELATIVE "${path}/tally" "${path}/tally/*")
    foreach(link IN LISTS links)
        if(NOT link IN_LIST ARGN) # of an earlier configuration
            file(REMOVE "${path}/tally/${link}")
        endif()
    endforeach()
    foreach(room IN LISTS ARGN)
        file(CREATE_LINK "${PROJECT_SOURCE_DIR}/src/${room}" "${path}/tally/${room}" SYMBOLIC)
    endforeach()
    set(${out} "${path}" PARENT_SCOPE)
endfunction()

# tally_room(NAME [SEES ROOM...] [USES LIBRARY...]): the sources of src/NAME as the target tally_NAME, whose objects join tally_objects.
function(tally_room name)
    cmake_parse_arguments(PARSE_ARGV 1 room "" "" "SEES;USES")
    tally_room_path(path ${name} ${room_SEES} ${name})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.cpp")
    if(NOT sources) # headers alone, or taken out of a copy of the tree
        return()
    endif()
    add_library(tally_${name} OBJECT ${sources})
    target_compile_features(tally_${name} PRIVATE cxx_std_20)
    target_compile_options(tally_${name} PRIVATE -ffp-contract=off)
    target_include_directories(tally_${name} PRIVATE "${path}")
    target_link_libraries(tally_${name} PRIVATE tally_flags ${room_USES})
    if(BUILD_SHARED_LIBS)
        set_target_properties(tally_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
    set(tally_objects ${tally_objects} $<TARGET_OBJECTS:tally_${name}> PARENT_SCOPE)
endfunction()

# What everybody outside src/ sees: all of it.
set(tally_public_path "${PROJECT_BINARY_DIR}/include")
file(MAKE_DIRECTORY "${tally_public_path}")
file(CREATE_LINK "${PROJECT_SOURCE_DIR}/src" "${tally_public_path}/tally" SYMBOLIC)
