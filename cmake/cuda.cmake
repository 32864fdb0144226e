# TALLY_CUDA: whether the GPU's kernels are built. Sets tally_has_cuda; without it no CUDA name reaches a compiler.
set(TALLY_CUDA OFF CACHE STRING "Kernels for NVIDIA GPUs: ON, OFF, or AUTO (where nvcc is found)")
set_property(CACHE TALLY_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT TALLY_CUDA MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "TALLY_CUDA is ${TALLY_CUDA}; it may be AUTO, ON or OFF")
endif()

set(tally_has_cuda OFF)
if(NOT TALLY_CUDA STREQUAL "OFF")
    include(CheckLanguage)
    set(CMAKE_MESSAGE_LOG_LEVEL WARNING) # no toolkit is nothing to talk about
    check_language(CUDA)
    unset(CMAKE_MESSAGE_LOG_LEVEL)
    if(CMAKE_CUDA_COMPILER)
        if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
            set(CMAKE_CUDA_ARCHITECTURES 80 90)
        endif()
        enable_language(CUDA)
        if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake before 3.25.2 does not know nvcc's
            set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
            set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
        endif()
        find_package(CUDAToolkit REQUIRED)
        set(tally_has_cuda ON)
    elseif(TALLY_CUDA STREQUAL "ON")
        message(FATAL_ERROR "TALLY_CUDA is ON, but there is no nvcc; name it with -DCMAKE_CUDA_COMPILER=...")
    endif()
endif()

# How every .cu file of this tree is compiled: products and sums round apart, as on the CPU.
function(tally_set_up_cuda target)
    set_target_properties(${target} PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON
        POSITION_INDEPENDENT_CODE "$<BOOL:${BUILD_SHARED_LIBS}>")
    target_compile_options(${target} PRIVATE --fmad=false --expt-relaxed-constexpr
        -Xcompiler=-Wall,-Wextra,-Wshadow,-ffp-contract=off)
    if(TALLY_WERROR)
        target_compile_options(${target} PRIVATE --Werror=all-warnings)
    endif()
endfunction()
