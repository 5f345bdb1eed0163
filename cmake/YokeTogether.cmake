# Sources that are compiled several at a time: headers of GoogleTest, pybind11, CLI11 and nlohmann-json cost far more to
# compile than what a source of a test or a binding adds.
#
# CMake's own UNITY_BUILD names sources by their absolute paths, so that the compiler cache serves no other clone.
option(YOKE_UNITY "Compile the sources of tests and bindings eight at a time" ON)

# Has a target compile its C++ sources eight at a time. Sanitizers leave out what costs most in the headers' templates:
# pointers that are checked for null and for the class behind them. Preset clang compiles one source at a time: it finds
# a header that a source forgot.
function(yoke_compile_together target)
    if(YOKE_SANITIZE MATCHES address AND YOKE_SANITIZE MATCHES undefined)
        target_compile_options(${target} PRIVATE -fno-sanitize=null,object-size,pointer-overflow,vptr)
    endif()
    if(NOT YOKE_UNITY)
        return()
    endif()
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    set(kept ${sources})
    list(FILTER kept EXCLUDE REGEX "[.]cpp$")
    list(FILTER sources INCLUDE REGEX "[.]cpp$")
    set(batch 0)
    while(sources)
        set(text "")
        foreach(_ RANGE 1 8)
            list(POP_FRONT sources source)
            if(source)
                cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
                cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
                string(APPEND text "#include \"${source}\"\n")
            endif()
        endforeach()
        set(file ${CMAKE_CURRENT_BINARY_DIR}/together/${target}/${batch}.cpp)
        file(GENERATE OUTPUT ${file} CONTENT "${text}")
        list(APPEND kept ${file})
        math(EXPR batch "${batch} + 1")
    endwhile()
    set_property(TARGET ${target} PROPERTY SOURCES ${kept})
endfunction()
