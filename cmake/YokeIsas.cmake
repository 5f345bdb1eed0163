# yoke_isas(out): instruction sets of YOKE_CPU_ISAS. `native` is base and the best set of this machine, found by the
# same features as in kernels/cpu/cpuid.cpp, which chooses at run time.
set(yoke_known_isas base v3 v4)

function(yoke_native_isa out)
    if(NOT DEFINED CACHE{YOKE_NATIVE_ISA})
        set(folder ${PROJECT_BINARY_DIR}/CMakeFiles/native)
        file(WRITE ${folder}/native.cpp [[
#include <cstdio>
int main()
{
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    printf("%s", v4 ? "v4" : v3 ? "v3" : "base");
}
]])
        try_run(status compiles ${folder} ${folder}/native.cpp RUN_OUTPUT_VARIABLE best)
        if(NOT compiles OR NOT status EQUAL 0 OR NOT best IN_LIST yoke_known_isas)
            message(FATAL_ERROR "YOKE_CPU_ISAS=native: a program that asks for this processor's instruction sets could not "
                                "be built and run here. Name them: YOKE_CPU_ISAS=\"base;v3\".")
        endif()
        set(YOKE_NATIVE_ISA ${best} CACHE INTERNAL "The best instruction set that this machine runs")
    endif()
    set(${out} ${YOKE_NATIVE_ISA} PARENT_SCOPE)
endfunction()

function(yoke_isas out)
    set(isas ${YOKE_CPU_ISAS})
    list(JOIN yoke_known_isas ", " known)
    foreach(isa IN LISTS isas)
        if(NOT isa IN_LIST yoke_known_isas AND NOT isa STREQUAL "native")
            message(FATAL_ERROR "YOKE_CPU_ISAS names \"${isa}\"; there are ${known}, and native for base and the best of this "
                                "machine: YOKE_CPU_ISAS=\"base;v3\".")
        endif()
    endforeach()
    if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
        set(isas base)
    elseif("native" IN_LIST isas)
        yoke_native_isa(best)
        list(APPEND isas base ${best})
    endif()
    list(REMOVE_ITEM isas native)
    list(REMOVE_DUPLICATES isas)
    if(NOT "base" IN_LIST isas)
        message(FATAL_ERROR "YOKE_CPU_ISAS=\"${YOKE_CPU_ISAS}\" lacks base, which every other level stands on.")
    endif()
    set(${out} ${isas} PARENT_SCOPE)
endfunction()
