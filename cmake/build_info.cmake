# Writes build_info.h with the commit of the moment; configure_file leaves the file alone when its content stays the same.
set(TESSERA_COMMIT "")
if(GIT)
  execute_process(COMMAND ${GIT} describe --always --dirty WORKING_DIRECTORY ${SOURCE_DIR}
                  OUTPUT_VARIABLE TESSERA_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT TESSERA_COMMIT)
  set(TESSERA_COMMIT unknown)
endif()
configure_file(${INPUT} ${OUTPUT} @ONLY)
