# Where things lie. The build tree mirrors an install prefix: lib/ for libyoke and its backend
# modules, python/ and lua/ for what scripts import, each found from the other by relative RPATH.
set(YOKE_BUILD_LIB ${PROJECT_BINARY_DIR}/lib)
set(YOKE_BUILD_PYTHON ${PROJECT_BINARY_DIR}/python)
set(YOKE_BUILD_LUA ${PROJECT_BINARY_DIR}/lua)

# `env CMD…` runs CMD with the build tree's package, modules and libraries on its paths.
configure_file(${PROJECT_SOURCE_DIR}/cmake/env.in ${PROJECT_BINARY_DIR}/env @ONLY
               FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                WORLD_READ WORLD_EXECUTE)

# Install folders of programs and their files. A wheel's programs and files go into the environment's bin and share.
set(YOKE_PROGRAM_DIR ${CMAKE_INSTALL_BINDIR})
set(YOKE_MAN_DIR ${CMAKE_INSTALL_MANDIR})
set(YOKE_COMPLETION_DIR ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
if(DEFINED SKBUILD)
    set(YOKE_PROGRAM_DIR ${SKBUILD_SCRIPTS_DIR})
    set(YOKE_MAN_DIR ${SKBUILD_DATA_DIR}/share/man)
    set(YOKE_COMPLETION_DIR ${SKBUILD_DATA_DIR}/share/bash-completion/completions)
endif()

# Installs a program that needs libyoke, with an RPATH that stays valid when the prefix is moved. From an
# environment's bin, the package is in site-packages (dist-packages on Debian). From the bin of `pip install
# --target`, the package is beside bin.
function(yoke_install_program target)
    set(paths "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
    if(DEFINED SKBUILD)
        find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
        cmake_path(GET Python_STDLIB FILENAME python) # python3.11, python3.13t
        foreach(packages lib/${python}/site-packages lib64/${python}/site-packages lib/${python}/dist-packages)
            list(APPEND paths "$ORIGIN/../${packages}/${CMAKE_INSTALL_LIBDIR}")
        endforeach()
    endif()
    set_target_properties(${target} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin INSTALL_RPATH "${paths}")
    install(TARGETS ${target} RUNTIME DESTINATION ${YOKE_PROGRAM_DIR})
endfunction()

# Links scripts into the build tree instead of copying them, so an edit takes effect at once. Installs the scripts
# unchanged.
function(yoke_add_scripts from build_folder install_folder)
    file(GLOB_RECURSE scripts CONFIGURE_DEPENDS RELATIVE ${from}
         ${from}/*.py ${from}/*.pyi ${from}/py.typed ${from}/*.lua)
    foreach(script IN LISTS scripts)
        cmake_path(GET script PARENT_PATH folder)
        file(MAKE_DIRECTORY ${build_folder}/${folder})
        file(CREATE_LINK ${from}/${script} ${build_folder}/${script} SYMBOLIC)
        install(FILES ${from}/${script} DESTINATION ${install_folder}/${folder})
    endforeach()
endfunction()

# Installs a module that needs libyoke, with an RPATH valid after a move of the prefix.
function(yoke_install_module target folder)
    file(RELATIVE_PATH to_lib /prefix/${folder} /prefix/${CMAKE_INSTALL_LIBDIR})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_lib}")
    install(TARGETS ${target} LIBRARY DESTINATION ${folder})
endfunction()
