# `make install` and the Debian package: the program, its recipes, the completions of three shells and the
# manual page; both build the target `installed` first. The program finds its recipes beside itself
# (../share/weft/recipes), so the tree may be moved; tests/install/run.sh holds that.
include(GNUInstallDirs)

install(TARGETS weft RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Where they were built (make test builds them): the program finds them in lib/weft.
foreach(library weft_cuda weft_nccl)
  if(TARGET ${library})
    install(FILES $<TARGET_FILE:${library}> DESTINATION lib/weft OPTIONAL)
  endif()
endforeach()
install(DIRECTORY recipes hardware DESTINATION ${CMAKE_INSTALL_DATADIR}/weft)
# What prices are held against: `weft plan` tells errors of the nearest of these runs.
file(GLOB published CONFIGURE_DEPENDS tests/golden/published_*.csv)
install(FILES ${published} DESTINATION ${CMAKE_INSTALL_DATADIR}/weft/published)
install(PROGRAMS tools/mpirun.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/weft)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES cmake/debian_copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# Debian wants the manual page and the changes compressed, and without the time in which that was done.
set(weft_pages ${CMAKE_BINARY_DIR}/pages)
add_custom_command(
  OUTPUT ${weft_pages}/weft.1.gz ${weft_pages}/changelog.gz
  COMMAND ${CMAKE_COMMAND} -E make_directory ${weft_pages}
  COMMAND gzip -9nc ${CMAKE_SOURCE_DIR}/docs/weft.1 > ${weft_pages}/weft.1.gz
  COMMAND gzip -9nc ${CMAKE_SOURCE_DIR}/CHANGELOG.md > ${weft_pages}/changelog.gz
  DEPENDS docs/weft.1 CHANGELOG.md)
install(FILES ${weft_pages}/weft.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${weft_pages}/changelog.gz DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The program itself writes the completions, from its commands and keys.
set(weft_completions ${CMAKE_BINARY_DIR}/completions)
add_custom_command(
  OUTPUT ${weft_completions}/weft ${weft_completions}/_weft ${weft_completions}/weft.fish
  COMMAND ${CMAKE_COMMAND} -E make_directory ${weft_completions}
  COMMAND weft completion bash > ${weft_completions}/weft
  COMMAND weft completion zsh > ${weft_completions}/_weft
  COMMAND weft completion fish > ${weft_completions}/weft.fish
  DEPENDS weft)
# Everything that is installed, built: `cmake --install` fails on what is missing.
add_custom_target(installed ALL DEPENDS weft ${weft_completions}/weft ${weft_pages}/weft.1.gz)
install(FILES ${weft_completions}/weft
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
# zsh looks into site-functions of /usr/local; Debian's packages have another folder.
set(WEFT_ZSH_FOLDER site-functions CACHE STRING "Folder of zsh completions under share/zsh")
install(FILES ${weft_completions}/_weft DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${WEFT_ZSH_FOLDER})
install(FILES ${weft_completions}/weft.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weft)
# Debian asks for a name and an address: those of whoever makes the package.
set(WEFT_PACKAGER "The engineers of Weft <weft@noreply.example>" CACHE STRING
  "Name and address in the Debian package, as in NAME <ADDRESS>")
set(CPACK_PACKAGE_CONTACT ${WEFT_PACKAGER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains mixture-of-experts models and hides their communication")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Weft trains mixture-of-experts language models on several CPU ranks, threads
or MPI processes, and hides the communication between them behind computation.
Every training step is a graph that is verified and simulated before it runs.
.
weft check judges a layout of any size before anyone runs it, with the config
keys and flags of Megatron.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# What the program links, where dpkg's own tool is there to ask; else by name.
find_program(WEFT_SHLIBDEPS dpkg-shlibdeps)
if(WEFT_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libopenblas0-pthread, libyaml-cpp0.7 | libyaml-cpp0.8, libfmt9, zlib1g")
  if(weft_onednn_found)
    string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libdnnl2 | libdnnl3, libgomp1")
  endif()
  if(weft_protobuf_found)
    string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libprotobuf-lite32 | libprotobuf-lite32t64")
  endif()
  if(MPI_CXX_FOUND)
    string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libopenmpi3 | libopenmpi3t64")
  endif()
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openmpi-bin)
include(CPack)
