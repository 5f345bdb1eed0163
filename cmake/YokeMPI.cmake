# yoke_find_mpi(): MPI::MPI_C and MPI_C_FOUND, where there is an MPI with its headers.
#
# A compiler wrapper alone, as of Debian's openmpi-bin without libopenmpi-dev, ends find_package(MPI) with an error; so
# the wrapper is asked for the headers first.
find_program(YOKE_MPICC NAMES mpicc HINTS ${MPI_HOME} ENV MPI_HOME PATH_SUFFIXES bin DOC "asked for MPI's headers")
mark_as_advanced(YOKE_MPICC)

function(yoke_mpicc_reads out source)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/read_by_mpicc.c)
    file(WRITE ${file} "${source}\n")
    execute_process(COMMAND ${YOKE_MPICC} -E ${file} RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    string(COMPARE EQUAL "${status}" 0 reads)
    set(${out} ${reads} PARENT_SCOPE)
endfunction()

macro(yoke_find_mpi)
    set(yoke_mpi_lacks_headers FALSE)
    if(YOKE_MPICC AND NOT MPI_C_COMPILER)
        yoke_mpicc_reads(yoke_mpicc_works "int number;") # else its compiler is not here, and CMake takes its flags alone
        yoke_mpicc_reads(yoke_mpicc_has_headers "#include <mpi.h>")
        if(yoke_mpicc_works AND NOT yoke_mpicc_has_headers)
            set(yoke_mpi_lacks_headers TRUE)
        endif()
    endif()
    if(NOT yoke_mpi_lacks_headers)
        find_package(MPI QUIET COMPONENTS C)
    endif()
endmacro()
