// SPDX-License-Identifier: Apache-2.0
//
// What can go wrong in a request, for every layer. The layer that finds the fault sets the status;
// it reaches protocol/compose unchanged, which alone knows the text or code that a client sees.
#pragma once

#include <cstdint>

namespace warpcache {

enum class [[nodiscard]] Status : uint8_t{
    kOk = 0,
    // The command or its arguments are malformed.
    kUnknownCommand,  // text: ERROR; binary: 0x81
    kBadFormat,       // CLIENT_ERROR bad command line format
    kBadDataChunk,    // CLIENT_ERROR bad data chunk
    kBadExptime,      // CLIENT_ERROR invalid exptime argument
    kBadDelta,        // CLIENT_ERROR invalid numeric delta argument
    kNonNumeric,      // CLIENT_ERROR cannot increment or decrement non-numeric value; binary: 0x06
    kKeyTooLong,      // a key over 250 bytes, where the protocol has a special reply for it
    kBadFlag,         // meta: CLIENT_ERROR invalid flag
    kDuplicateFlag,   // meta: CLIENT_ERROR duplicate flag
    kBadFlags,        // ma: CLIENT_ERROR invalid or duplicate flag, for any fault in its flags
    kTooManyFlags,    // meta: CLIENT_ERROR options flags are too long
    kBadToken,        // meta: CLIENT_ERROR bad token in command line format
    kBadOpaque,       // meta: CLIENT_ERROR opaque token too long
    kBadKeyEncoding,  // meta: CLIENT_ERROR error decoding key
    kBadInitial,      // meta: CLIENT_ERROR invalid numeric initial value
    kBadMetaDelta,    // meta: CLIENT_ERROR invalid numeric delta value
    kBadSetMode,      // ms: CLIENT_ERROR invalid mode for ms M token
    kBadArithmeticMode,  // ma: CLIENT_ERROR invalid mode for ma M token
    kInvalidArguments,   // binary: 0x04
    // The command is fine, the server cannot do it.
    kTooLarge,          // SERVER_ERROR object too large for cache; binary: 0x03
    kOutOfMemory,       // SERVER_ERROR out of memory storing object; binary: 0x82
    kNotSupported,      // a feature that does not exist or is switched off
    kUnauthenticated,   // CLIENT_ERROR unauthenticated; binary: 0x20
    kFlushDisabled,     // flush_all with -F
    kShutdownDisabled,  // shutdown without -A
    // Inside the server only; never composed.
    kDeferred,  // nothing took effect: try again after Store::reclaim(), or, where the function
                // says so, later
    // Composed, but after the others, whose numbers stay.
    kOverShare,  // SERVER_ERROR value exceeds the memory of one client; binary: 0x03
};

}  // namespace warpcache
