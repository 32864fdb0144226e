# Tests of src/processes: each file of cases is run by 1, 2, 3 and 5 processes, started by mpirun where MPI was found.
tally_glob(sources processes/*.cpp)
list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/processes/scenes.cpp")
add_executable(test_processes ${sources})
target_link_libraries(test_processes PRIVATE tally_processes tally_test_main tally_flags)
target_precompile_headers(test_processes REUSE_FROM tally_test_main)
add_dependencies(test_processes tally_pretend)

# On one machine, by its loopback, more processes than cores: they yield while they wait. As root, too, as in a container.
set(on_one_machine OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl=self,vader,tcp OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo
    OMPI_MCA_hwloc_base_binding_policy=none OPENBLAS_NUM_THREADS=1)
foreach(file IN LISTS sources)
    cmake_path(GET file STEM stem)
    if(NOT stem MATCHES "_test$")
        continue()
    endif()
    string(REGEX REPLACE "_test$" "" name "${stem}")
    foreach(ranks IN ITEMS 1 2 3 5)
        set(test processes/${name}_${ranks})
        if(tally_has_mpi)
            add_test(NAME ${test} COMMAND "${MPIEXEC_EXECUTABLE}" ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:test_processes> "-#" "[#${stem}]")
        elseif(ranks EQUAL 1)
            add_test(NAME ${test} COMMAND test_processes "-#" "[#${stem}]")
        else()
            continue()
        endif()
        math(EXPR cores "(${ranks} + 1) / 2") # most of the time they wait for each other
        set_tests_properties(${test} PROPERTIES LABELS processes TIMEOUT 120 PROCESSORS ${cores} ENVIRONMENT "${on_one_machine}")
    endforeach()
endforeach()

add_executable(processes_scenes processes/scenes.cpp)
target_link_libraries(processes_scenes PRIVATE tally_processes tally_flags)
target_compile_definitions(processes_scenes PRIVATE TALLY_HAS_MPI=$<BOOL:${tally_has_mpi}>)
if(tally_has_mpi)
    target_link_libraries(processes_scenes PRIVATE MPI::MPI_CXX)
    tally_add_script(processes/scenes processes/scenes_test.py $<TARGET_FILE:processes_scenes> "${MPIEXEC_EXECUTABLE}")
    tally_add_script(processes/page processes/page_test.py "${MPIEXEC_EXECUTABLE}" "${CMAKE_CXX_COMPILER} ${CMAKE_CXX_FLAGS}" "${tally_public_path}"
        $<TARGET_FILE:tally_processes> $<TARGET_FILE:tally> "-Wl,-rpath,$<TARGET_FILE_DIR:tally>" -lopenblas -lz -ldl ${MPI_CXX_LIBRARIES})
    set_property(TEST processes/page APPEND PROPERTY ENVIRONMENT "${on_one_machine}")
else()
    tally_add_script(processes/scenes processes/scenes_test.py $<TARGET_FILE:processes_scenes>)
endif()
set_property(TEST processes/scenes APPEND PROPERTY ENVIRONMENT "${on_one_machine}")
set_tests_properties(processes/scenes PROPERTIES TIMEOUT 120 COST 30)  # it mostly waits
