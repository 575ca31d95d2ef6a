# Event files for TensorBoard (weft/events/protobuf). The messages are compiled from event.proto, without the
# project's warnings; of protobuf the small runtime is enough. Without it, weft/events/no_protobuf.cpp says so.
option(WEFT_PROTOBUF "Write event files for TensorBoard where protobuf is found" ON)
set(weft_protobuf_found OFF)

if(WEFT_PROTOBUF)
  find_package(Protobuf)
  if(Protobuf_FOUND AND TARGET protobuf::protoc AND TARGET protobuf::libprotobuf-lite)
    set(weft_protobuf_found ON)
  endif()
endif()

function(weft_event_messages)
  set(folder ${CMAKE_BINARY_DIR}/generated)
  set(message weft/events/protobuf/event)
  add_custom_command(
    OUTPUT ${folder}/${message}.pb.cc ${folder}/${message}.pb.h
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND protobuf::protoc --proto_path=${CMAKE_SOURCE_DIR} --cpp_out=${folder}
      ${CMAKE_SOURCE_DIR}/${message}.proto
    DEPENDS ${CMAKE_SOURCE_DIR}/${message}.proto)
  add_library(weft_event_messages STATIC ${folder}/${message}.pb.cc)
  target_include_directories(weft_event_messages SYSTEM PUBLIC ${folder})
  target_link_libraries(weft_event_messages PUBLIC protobuf::libprotobuf-lite)
  if(WEFT_SANITIZE)
    target_compile_options(weft_event_messages PRIVATE -fsanitize=${WEFT_SANITIZE})
  endif()
  set_target_properties(weft_event_messages PROPERTIES UNITY_BUILD OFF POSITION_INDEPENDENT_CODE ON)
endfunction()
