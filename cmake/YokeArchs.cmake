# YOKE_CUDA_ARCHS, as CMake's CUDA_ARCHITECTURES: "86-real" is machine code, "86-virtual" PTX for later cards, "86"
# both. Unless told otherwise every card that people have is served, and later ones by the PTX of the last.
set(yoke_common_archs 75-real 80-real 86-real 89-real 90-real 100-real 120)
set(YOKE_CUDA_ARCHS ${yoke_common_archs} CACHE STRING
    "CUDA architectures of the CUDA module, like 86 or \"80-real;90\"; native: those of this machine's cards, if there are any")

# The architectures of the cards that nvidia-smi names; where it names none, every common one.
function(yoke_native_archs out)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                    OUTPUT_VARIABLE said RESULT_VARIABLE status ERROR_QUIET)
    string(REGEX MATCHALL "[0-9]+[.][0-9]+" archs "${said}")
    list(TRANSFORM archs REPLACE "[.]" "")
    list(REMOVE_DUPLICATES archs)
    list(SORT archs COMPARE NATURAL)
    if(NOT archs OR NOT status EQUAL 0)
        set(archs ${yoke_common_archs})
    endif()
    set(${out} ${archs} PARENT_SCOPE)
endfunction()

# Of the common ones those that this nvcc compiles for: CUDA 13 has left 7.0 behind, 12.6 does not know 10.0. A list
# that someone gave stands as it is, and nvcc says what it does not know.
function(yoke_cuda_archs out nvcc)
    set(archs ${YOKE_CUDA_ARCHS})
    if(archs STREQUAL "native")
        yoke_native_archs(archs)
    endif()
    execute_process(COMMAND ${nvcc} --list-gpu-arch OUTPUT_VARIABLE known RESULT_VARIABLE status ERROR_QUIET)
    if(archs STREQUAL "${yoke_common_archs}" AND status EQUAL 0)
        string(REGEX MATCHALL "[0-9]+" known "${known}")
        list(TRANSFORM archs REPLACE "-real$" "")
        set(served "")
        foreach(arch IN LISTS archs)
            if(arch IN_LIST known)
                list(APPEND served ${arch})
            else()
                message(STATUS "this nvcc does not compile for sm_${arch}: left out")
            endif()
        endforeach()
        list(POP_BACK served last)
        list(TRANSFORM served APPEND -real)
        set(archs ${served} ${last})
    endif()
    set(${out} ${archs} PARENT_SCOPE)
endfunction()
