# YOKE_CUDA_ARCHS, as CMake's CUDA_ARCHITECTURES: "86-real" is machine code, "86-virtual" PTX for later cards, "86"
# both; "native", "all" and "all-major" name the architectures of this machine's cards and of this nvcc. By default
# every common card is served, and later cards by the PTX of the last architecture.
set(yoke_common_archs 75-real 80-real 86-real 89-real 90-real 100-real 120)
set(YOKE_CUDA_ARCHS ${yoke_common_archs} CACHE STRING
    "CUDA architectures of the CUDA module, like 86 or \"80-real;90\"; native: those of this machine's cards, if there are any")

# Sets `out` to the architectures of the cards in nvidia-smi; without a card, to every common architecture.
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

# Machine code of each, and PTX of the last.
function(yoke_real_archs out)
    set(archs ${ARGN})
    list(SORT archs COMPARE NATURAL)
    list(POP_BACK archs last)
    list(TRANSFORM archs APPEND -real)
    set(${out} ${archs} ${last} PARENT_SCOPE)
endfunction()

# Sets `out` to the common architectures supported by this nvcc: CUDA 13 has dropped 7.0, 12.6 does not know 10.0.
function(yoke_served_archs out)
    set(served "")
    foreach(arch IN LISTS yoke_common_archs)
        string(REGEX MATCH "[0-9]+" arch ${arch})
        if(arch IN_LIST ARGN)
            list(APPEND served ${arch})
        else()
            message(STATUS "this nvcc does not compile for sm_${arch}: left out")
        endif()
    endforeach()
    yoke_real_archs(archs ${served})
    set(${out} ${archs} PARENT_SCOPE)
endfunction()

# Stops at an invalid entry, and at an entry unknown to nvcc, if nvcc has listed its architectures. nvcc lists only
# numbers; the suffixes are those of nvcc 13.0's help.
function(yoke_check_archs archs)
    set(forms "each entry is a number like 86 (compute capability 8.6), 86-real (machine code alone) or 86-virtual (PTX alone), "
              "or the whole is native, all or all-major")
    list(JOIN forms "" forms)
    if(archs STREQUAL "")
        message(FATAL_ERROR "YOKE_CUDA_ARCHS is empty; ${forms}")
    endif()
    foreach(arch IN LISTS archs)
        if(NOT arch MATCHES "^([1-9][0-9]+)([af]?)(-real|-virtual)?$")
            message(FATAL_ERROR "YOKE_CUDA_ARCHS has \"${arch}\"; ${forms}")
        elseif((CMAKE_MATCH_2 STREQUAL "a" AND CMAKE_MATCH_1 LESS 90) OR (CMAKE_MATCH_2 STREQUAL "f" AND CMAKE_MATCH_1 LESS 100))
            message(FATAL_ERROR "YOKE_CUDA_ARCHS has \"${arch}\"; nvcc has \"a\" (what one architecture alone has) from 90 on and "
                                "\"f\" (what a family has) from 100 on; ${forms}")
        elseif(ARGN AND NOT CMAKE_MATCH_1 IN_LIST ARGN)
            list(JOIN ARGN " " known)
            message(FATAL_ERROR "YOKE_CUDA_ARCHS has \"${arch}\", for which this nvcc does not compile; it knows ${known}")
        endif()
    endforeach()
endfunction()

# Sets `out` to the architectures of YOKE_CUDA_ARCHS for an nvcc. nvcc may be absent if no source is compiled with it.
function(yoke_cuda_archs out nvcc)
    set(archs ${YOKE_CUDA_ARCHS})
    set(known "")
    execute_process(COMMAND ${nvcc} --list-gpu-arch OUTPUT_VARIABLE said RESULT_VARIABLE status ERROR_QUIET)
    if(status EQUAL 0)
        string(REGEX MATCHALL "[0-9]+" known "${said}")
    endif()
    if(archs STREQUAL "native")
        yoke_native_archs(archs)
    endif()
    if(archs MATCHES "^all(-major)?$")
        set(every ${known})
        if(archs STREQUAL "all-major")
            list(GET known 0 earliest)  # nvcc lists this architecture
            list(FILTER every INCLUDE REGEX "0$")
            list(PREPEND every ${earliest})
            list(REMOVE_DUPLICATES every)
        endif()
        set(archs ${yoke_common_archs})
        if(every)
            yoke_real_archs(archs ${every})
        endif()
    elseif(archs STREQUAL "${yoke_common_archs}" AND known)
        yoke_served_archs(archs ${known})
    endif()
    yoke_check_archs("${archs}" ${known})
    set(${out} ${archs} PARENT_SCOPE)
endfunction()
