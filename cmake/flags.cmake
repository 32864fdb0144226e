# tally_flags has the compiler options of every translation unit of this tree, and is never exported to consumers.
include(CheckCXXCompilerFlag)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(portable_arch x86-64-v3)
endif()
set(TALLY_ARCH "${portable_arch}" CACHE STRING "Value of -march: native in the presets, a portable one for an installed library, empty for none")

# Definitions for code that need not be fast. The compiler then ignores always_inline and flatten, and needs a third less time for
# programs that use tally. No result changes.
set(tally_no_inline always_inline=unused flatten=unused)

add_library(tally_flags INTERFACE)
if(NOT TALLY_FIRST_LESSON)  # warnings take a twentieth of the time, and another build shows them
    target_compile_options(tally_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(tally_flags INTERFACE -Wno-restrict)  # false warnings of g++ 12 for "text" + std::string
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # clang warns about constants such as -0.2466 in an array of float, and about signs. g++ warns about all other conversions.
    target_compile_options(tally_flags INTERFACE -Wno-implicit-float-conversion -Wno-sign-conversion)
endif()
# Tests discard results of calls that must throw. The option follows -Wall, which would turn the warning on again in clang.
target_compile_options(tally_flags INTERFACE
    "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<STREQUAL:$<TARGET_PROPERTY:SOURCE_DIR>,${PROJECT_SOURCE_DIR}/tests>>:-Wno-unused-result>")
# A local name may shadow a name of another file that is compiled together with its file.
target_compile_options(tally_flags INTERFACE
    "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,$<STREQUAL:$<TARGET_PROPERTY:SOURCE_DIR>,${PROJECT_SOURCE_DIR}/tests>>:-Wno-shadow>")
if(CMAKE_UNITY_BUILD)  # the files of a module are compiled together, which takes half the time
    target_compile_options(tally_flags INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>")
endif()
if(TALLY_WERROR)
    target_compile_options(tally_flags INTERFACE -Werror)
endif()

# ccache supports precompiled headers only with these two options. With any other launcher they are off.
set(CMAKE_PCH_WARN_INVALID OFF)
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "(^|/)ccache$")
    list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros)
    add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>"
        "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
elseif(CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()

if(TALLY_ARCH)
    check_cxx_compiler_flag("-march=${TALLY_ARCH}" TALLY_ARCH_WORKS_${TALLY_ARCH})
    if(NOT TALLY_ARCH_WORKS_${TALLY_ARCH})
        message(FATAL_ERROR "${CMAKE_CXX_COMPILER} does not know -march=${TALLY_ARCH}; choose another with -DTALLY_ARCH=..., or none with -DTALLY_ARCH=")
    endif()
    target_compile_options(tally_flags INTERFACE "-march=${TALLY_ARCH}")
endif()
