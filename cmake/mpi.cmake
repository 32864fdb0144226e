# TALLY_MPI decides whether src/distributed uses MPI. Sets tally_has_mpi; without MPI there is one process.
set(TALLY_MPI AUTO CACHE STRING "Windows across processes by MPI: ON, OFF, or AUTO (where one is found)")
set_property(CACHE TALLY_MPI PROPERTY STRINGS AUTO ON OFF)
if(NOT TALLY_MPI MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "TALLY_MPI is ${TALLY_MPI}; it may be AUTO, ON or OFF")
endif()

set(tally_has_mpi OFF)
if(NOT TALLY_MPI STREQUAL "OFF")
    set(MPI_CXX_SKIP_MPICXX ON) # the C interface is enough
    find_package(MPI QUIET COMPONENTS CXX)
    if(MPI_CXX_FOUND AND MPI_CXX_VERSION VERSION_LESS 3) # lacks nonblocking collective calls
        message(STATUS "Processes: MPI ${MPI_CXX_VERSION} by ${MPI_CXX_COMPILER} is too old; MPI 3 is needed")
        set(MPI_CXX_FOUND FALSE)
    endif()
    if(MPI_CXX_FOUND)
        set(tally_has_mpi ON)
        message(STATUS "Processes: MPI ${MPI_CXX_VERSION} by ${MPI_CXX_COMPILER}, started by ${MPIEXEC_EXECUTABLE}")
    elseif(TALLY_MPI STREQUAL "ON")
        message(FATAL_ERROR "TALLY_MPI is ON, but no MPI 3 was found (Debian: libopenmpi-dev openmpi-bin); name the compiler "
            "of one with -DMPI_CXX_COMPILER=mpicxx")
    endif()
endif()
