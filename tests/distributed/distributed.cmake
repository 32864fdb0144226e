# Tests of src/distributed. mpirun runs each file of cases with 1, 2, 3 and 5 processes, and messages_test.cpp also with 4.
tally_glob(sources distributed/*.cpp)
set(study "${PROJECT_SOURCE_DIR}/bench/scaling/collectives.cpp")  # the tests compare the messages of this study with those of MPI
list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/distributed/scenes.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/distributed/training.cpp")
add_executable(test_distributed ${sources} "${study}")
target_include_directories(test_distributed PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(test_distributed PRIVATE tally_distributed tally_test_main tally_flags)
target_compile_definitions(test_distributed PRIVATE TALLY_HAS_MPI=$<BOOL:${tally_has_mpi}>)
if(tally_has_mpi)
    target_link_libraries(test_distributed PRIVATE MPI::MPI_CXX)
endif()
target_precompile_headers(test_distributed REUSE_FROM tally_test_main)
add_dependencies(test_distributed tally_simulated)

# There may be more processes than cores, so processes yield while they wait. In containers they run as root.
set(on_one_machine OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl=self,vader,tcp OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo
    OMPI_MCA_hwloc_base_binding_policy=none OPENBLAS_NUM_THREADS=1)
foreach(file IN LISTS sources)
    cmake_path(GET file STEM stem)
    if(NOT stem MATCHES "_test$")
        continue()
    endif()
    string(REGEX REPLACE "_test$" "" name "${stem}")
    set(worlds 1 2 3 5)
    if(name STREQUAL "messages")
        set(worlds 1 2 3 4 5)
    endif()
    foreach(ranks IN LISTS worlds)
        set(test distributed/${name}_${ranks})
        if(tally_has_mpi)
            add_test(NAME ${test} COMMAND "${MPIEXEC_EXECUTABLE}" ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:test_distributed> "-#" "[#${stem}]")
        elseif(ranks EQUAL 1)
            add_test(NAME ${test} COMMAND test_distributed "-#" "[#${stem}]")
        else()
            continue()
        endif()
        math(EXPR cores "(${ranks} + 1) / 2")  # processes mostly wait for each other
        set_tests_properties(${test} PROPERTIES LABELS distributed TIMEOUT 120 PROCESSORS ${cores} ENVIRONMENT "${on_one_machine}")
    endforeach()
endforeach()

add_executable(distributed_scenes distributed/scenes.cpp)
target_link_libraries(distributed_scenes PRIVATE tally_distributed tally_flags)
target_compile_definitions(distributed_scenes PRIVATE TALLY_HAS_MPI=$<BOOL:${tally_has_mpi}>)
if(tally_has_mpi)
    target_link_libraries(distributed_scenes PRIVATE MPI::MPI_CXX)
    tally_add_script(distributed/scenes distributed/scenes_test.py $<TARGET_FILE:distributed_scenes> "${MPIEXEC_EXECUTABLE}")
    tally_add_script(distributed/page distributed/page_test.py "${MPIEXEC_EXECUTABLE}" "${CMAKE_CXX_COMPILER} ${CMAKE_CXX_FLAGS}" "${tally_include}"
        $<TARGET_FILE:tally_distributed> $<TARGET_FILE:tally> "-Wl,-rpath,$<TARGET_FILE_DIR:tally>" -lopenblas -lz -ldl ${MPI_CXX_LIBRARIES})
    set_property(TEST distributed/page APPEND PROPERTY ENVIRONMENT "${on_one_machine}")
else()
    tally_add_script(distributed/scenes distributed/scenes_test.py $<TARGET_FILE:distributed_scenes>)
endif()
set_property(TEST distributed/scenes APPEND PROPERTY ENVIRONMENT "${on_one_machine}")
set_tests_properties(distributed/scenes PROPERTIES TIMEOUT 120 COST 30 PROCESSORS 2)  # mostly waits

# A lesson on several ranks starts the launcher itself.
if(TALLY_COURSE)
    foreach(run IN ITEMS 34_across_processes_2 34_across_processes_3 35_one_all_reduce_2 35_one_all_reduce_5
            36_the_pipe_2 36_the_pipe_5 37_what_a_pipe_keeps_2 37_what_a_pipe_keeps_5)  # each: a lesson and a number of ranks
        string(REGEX MATCH "^(.*)_(.)$" ignored ${run})
        add_test(NAME distributed/lesson_${run} COMMAND lesson_${CMAKE_MATCH_1} --plain --ranks ${CMAKE_MATCH_2})
        set_tests_properties(distributed/lesson_${run} PROPERTIES LABELS distributed TIMEOUT 120 PROCESSORS 2 SKIP_RETURN_CODE 77)
    endforeach()
    set(launcher)
    if(tally_has_mpi)
        set(launcher "${MPIEXEC_EXECUTABLE}")
    endif()
    tally_add_script(distributed/lesson distributed/lesson_test.py $<TARGET_FILE:lesson_35_one_all_reduce> ${launcher})
    set_tests_properties(distributed/lesson PROPERTIES TIMEOUT 120 PROCESSORS 2)
endif()

# Runs a training that is killed and stopped.
add_executable(distributed_training distributed/training.cpp)
target_link_libraries(distributed_training PRIVATE tally_distributed tally_flags)
tally_add_script(distributed/kills distributed/kills_test.py $<TARGET_FILE:distributed_training> "$<$<BOOL:${tally_has_mpi}>:${MPIEXEC_EXECUTABLE}>")
set_property(TEST distributed/kills APPEND PROPERTY ENVIRONMENT "${on_one_machine}")
set_tests_properties(distributed/kills PROPERTIES TIMEOUT 240 PROCESSORS 2 COST 60)
