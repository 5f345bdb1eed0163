# Compiler cache, if present: set up so that results of one clone of the tree serve another clone.
#
# ccache makes paths below CCACHE_BASEDIR relative before it looks for a result. The prefix map makes the compiler do
# the same with the paths in objects (__FILE__, line tables, notes of coverage). All settings stand here, so the
# machine needs no configuration.
find_program(YOKE_CCACHE ccache)
find_program(YOKE_ENV env)
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX,CUDA>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>")
if(NOT YOKE_CCACHE)
    return()
endif()
set(launcher ${YOKE_ENV})
if(NOT launcher)
    set(launcher ${CMAKE_COMMAND} -E env)  # the same, 10 ms slower a file
endif()
# gcno_cwd: notes of coverage may name the folder of another clone, which coverage.py does not rely on.
# CCACHE_DEPEND takes the list of headers from the compiler: without it ccache runs the preprocessor first, which costs
# a file of C++ 0.1 to 1.3 seconds more of 0.6 to 6.
list(APPEND launcher CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=gcno_cwd
     CCACHE_DEPEND=1 ${YOKE_CCACHE})
foreach(language C CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
        set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher})
    endif()
endforeach()
