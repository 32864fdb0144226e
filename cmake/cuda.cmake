# TALLY_CUDA decides whether the GPU's kernels are built. Sets tally_has_cuda.
set(TALLY_CUDA AUTO CACHE STRING "Kernels for NVIDIA GPUs: ON, OFF, or AUTO (where nvcc and cuBLAS are found)")
set_property(CACHE TALLY_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT TALLY_CUDA MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "TALLY_CUDA is ${TALLY_CUDA}; it may be AUTO, ON or OFF")
endif()

# Returns the architectures of this machine's GPUs, or 80, which newer GPUs can run too. CMAKE_CUDA_ARCHITECTURES overrides this.
function(tally_cuda_architectures out)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
        OUTPUT_VARIABLE found ERROR_QUIET RESULT_VARIABLE failed)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]+" found "${found}")
    string(REPLACE "." "" found "${found}")
    list(REMOVE_DUPLICATES found)
    if(failed OR NOT found)
        set(found 80)
    endif()
    set(${out} ${found} PARENT_SCOPE)
endfunction()

set(tally_has_cuda OFF)
if(NOT TALLY_CUDA STREQUAL "OFF")
    include(CheckLanguage)
    if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
        find_program(tally_nvcc nvcc HINTS ENV CUDA_PATH PATHS /usr/local/cuda/bin)
        mark_as_advanced(tally_nvcc)
        if(tally_nvcc)
            set(ENV{CUDACXX} "${tally_nvcc}")
        endif()
    endif()
    set(CMAKE_MESSAGE_LOG_LEVEL WARNING) # a missing toolkit needs no message
    check_language(CUDA)
    unset(CMAKE_MESSAGE_LOG_LEVEL)
    if(CMAKE_CUDA_COMPILER AND NOT CUDAToolkit_ROOT) # with several toolkits, take the compiler's
        get_filename_component(tally_nvcc_itself "${CMAKE_CUDA_COMPILER}" REALPATH)
        get_filename_component(CUDAToolkit_ROOT "${tally_nvcc_itself}/../.." ABSOLUTE)
    endif()
    find_package(CUDAToolkit QUIET)
    if(CMAKE_CUDA_COMPILER AND TARGET CUDA::cublas AND TARGET CUDA::cudart_static)
        if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
            tally_cuda_architectures(CMAKE_CUDA_ARCHITECTURES)
        endif()
        enable_language(CUDA)
        if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake before 3.25.2 lacks nvcc's option
            set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
            set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
        endif()
        set(tally_has_cuda ON)
        set(tally_least_architecture 0) # architectures that are not numbers ("native") fit the machine
        if("${CMAKE_CUDA_ARCHITECTURES}" MATCHES "^[0-9]")
            list(TRANSFORM CMAKE_CUDA_ARCHITECTURES REPLACE "[^0-9].*" "" OUTPUT_VARIABLE numbers)
            list(SORT numbers COMPARE NATURAL)
            list(GET numbers 0 tally_least_architecture)
        endif()
        message(STATUS "GPU kernels: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
    elseif(TALLY_CUDA STREQUAL "ON")
        message(FATAL_ERROR "TALLY_CUDA is ON, but the CUDA toolkit is incomplete: nvcc '${CMAKE_CUDA_COMPILER}', cuBLAS "
            "in '${CUDAToolkit_LIBRARY_DIR}'; name the compiler with -DCMAKE_CUDA_COMPILER=...")
    endif()
endif()

# Sets the options of every .cu file of this tree: products and sums are rounded separately, as on the CPU. Profilers and the findings
# of tests/ptx name source lines.
function(tally_set_up_cuda target)
    set_target_properties(${target} PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON
        POSITION_INDEPENDENT_CODE "$<BOOL:${BUILD_SHARED_LIBS}>")
    target_compile_options(${target} PRIVATE --fmad=false --expt-relaxed-constexpr -lineinfo
        -Xcompiler=-Wall,-Wextra,-Wshadow,-Wno-restrict,-ffp-contract=off) # restrict: see flags.cmake
    if(TALLY_WERROR)
        target_compile_options(${target} PRIVATE --Werror=all-warnings)
    endif()
endfunction()
