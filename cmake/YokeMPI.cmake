# yoke_find_mpi(): MPI::MPI_C and MPI_C_FOUND, where there is an MPI with its headers.
#
# A compiler wrapper alone, as of Debian's openmpi-bin without libopenmpi-dev, ends find_package(MPI) with an error; so
# the wrapper is asked for the headers first.
find_program(YOKE_MPICC NAMES mpicc HINTS ${MPI_HOME} ENV MPI_HOME PATH_SUFFIXES bin DOC "asked for MPI's headers")
mark_as_advanced(YOKE_MPICC)

macro(yoke_find_mpi)
    set(yoke_mpi_lacks_headers 0)
    if(YOKE_MPICC AND NOT MPI_C_COMPILER)
        file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/headers.c "#include <mpi.h>\n")
        execute_process(COMMAND ${YOKE_MPICC} -E ${CMAKE_CURRENT_BINARY_DIR}/headers.c
                        RESULT_VARIABLE yoke_mpi_lacks_headers OUTPUT_QUIET ERROR_QUIET)
    endif()
    if(yoke_mpi_lacks_headers EQUAL 0)
        find_package(MPI QUIET COMPONENTS C)
    endif()
endmacro()
