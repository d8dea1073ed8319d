# SPDX-License-Identifier: Apache-2.0
# cmake -DOBJECT=FILE -DOUT=FILE.cc -P EmbedObject.cmake: makes program_object() (src/nic_cache/object.h) of an object file.
file(READ "${OBJECT}" hex HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
file(WRITE "${OUT}" "// Made from bpf/nic_cache.bpf.c.
#include \"nic_cache/object.h\"

namespace warpcache::nic_cache {
namespace {
// In pages of its own, far from others: a server without the cache never has it in memory. The kernel maps what lies
// within 64 KB of a page that is used.
alignas(65536) __attribute__((section(\"nic_cache_object\"))) const uint8_t kObject[] = {${bytes}};
}  // namespace
Bytes program_object() { return {kObject, sizeof kObject}; }
}  // namespace warpcache::nic_cache
")
