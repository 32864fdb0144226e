# tally_module(NAME [APART] [SEES MODULE...] [USES LIBRARY...]) compiles src/NAME as the target tally_NAME and adds its objects to
# tally_objects. With APART another target compiles it. tests/repository/rules.py checks that NAME includes only modules in SEES.
function(tally_module name)
    cmake_parse_arguments(PARSE_ARGV 1 module "APART" "" "SEES;USES")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.cpp")
    if(module_APART OR NOT sources) # a module without sources has only headers
        return()
    endif()
    add_library(tally_${name} OBJECT ${sources})
    target_compile_features(tally_${name} PRIVATE cxx_std_20)
    target_compile_options(tally_${name} PRIVATE -ffp-contract=off)
    target_include_directories(tally_${name} PRIVATE "${tally_include}")
    target_link_libraries(tally_${name} PRIVATE tally_flags ${module_USES})
    if(BUILD_SHARED_LIBS)
        set_target_properties(tally_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
    set(tally_objects ${tally_objects} $<TARGET_OBJECTS:tally_${name}> PARENT_SCOPE)
endfunction()

# The only include path of the library, the tests and the programs: include/tally is a link to src.
set(tally_include "${PROJECT_SOURCE_DIR}/include")
