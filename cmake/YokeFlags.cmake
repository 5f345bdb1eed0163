# yoke_flags carries what every target of ours is compiled with. Third-party headers are found as
# system headers, so the warnings below concern our own code alone.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Line tables, not full debug information: backtraces name the line and builds stay small.
foreach(lang C CXX)
    set(CMAKE_${lang}_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
endforeach()

# Warnings and sanitizers are for host compilers; nvcc gets what it understands in kernels/cuda.
set(host "$<COMPILE_LANGUAGE:C,CXX>")
add_library(yoke_flags INTERFACE)
target_include_directories(yoke_flags INTERFACE ${PROJECT_SOURCE_DIR}
                                                ${PROJECT_SOURCE_DIR}/capi/include)
target_compile_options(yoke_flags INTERFACE
    "$<${host}:-Wall;-Wextra;-Wpedantic;-Wshadow>"
    "$<$<AND:${host},$<BOOL:${YOKE_WERROR}>>:-Werror>")
if(NOT YOKE_OPENMP)
    target_compile_options(yoke_flags INTERFACE "$<${host}:-fopenmp-simd>")
endif()

if(YOKE_SANITIZE)
    set(sanitize -fsanitize=${YOKE_SANITIZE} -fno-omit-frame-pointer)
    if(YOKE_SANITIZE MATCHES undefined)
        list(APPEND sanitize -fno-sanitize-recover=all)
    endif()
    # Everything in the process, C tests and extension modules too, must agree on the runtime.
    add_compile_options("$<${host}:${sanitize}>")
    add_link_options(-fsanitize=${YOKE_SANITIZE})
endif()
