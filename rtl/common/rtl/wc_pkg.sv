// SPDX-License-Identifier: Apache-2.0
//
// Types and constants that the blocks share. Byte 0 of a beat is bits 7:0, and comes first on the
// wire.
package wc_pkg;

  // Limits where no parameter says others.
  localparam int DEFAULT_KEY_MAX = 250;     // bytes; the protocols allow no more
  localparam int DEFAULT_VALUE_MAX = 1536;  // bytes; more than fits into a datagram
  localparam int HEADER_BEATS = 3;  // of an item, before key and value
  // Hashes of keys.
  localparam int HASH_TWO_CRCS = 0;  // a CRC of 32 bits for the row, another one for the tag
  localparam int HASH_ONE_CRC = 1;   // 16 bits of one for each
  localparam int DATAGRAM_BEATS = 174;  // 1392 bytes of a reply in one datagram
  localparam int SEGMENTS_MAX = 8;  // datagrams of a reply; a longer reply is dropped

  localparam logic [31:0] RELATIVE_MAX = 32'd2592000;  // 30 days; above it exptime is a Unix time

  typedef enum logic [4:0] {
    OP_NOP,      // no reply; carries the end of a datagram
    OP_END,      // the END of a get line whose last key has been emitted before
    OP_GET,
    OP_SET,
    OP_ADD,
    OP_REPLACE,
    OP_APPEND,
    OP_PREPEND,
    OP_DELETE,
    OP_INCR,
    OP_DECR,
    OP_TOUCH,
    OP_FLUSH,
    OP_VERSION,
    OP_NOOP,
    OP_OK,
    OP_ERROR
  } op_t;

  typedef enum logic [3:0] {
    ERR_UNKNOWN,
    ERR_FORMAT,
    ERR_DATA,
    ERR_EXPTIME,
    ERR_DELTA,
    ERR_NONNUM,
    ERR_UNSUPPORTED,
    ERR_TOOLARGE
  } err_t;

  typedef enum logic [3:0] {
    OUT_NONE,
    OUT_END,
    OUT_HIT,
    OUT_MISS,
    OUT_STORED,
    OUT_NOT_STORED,
    OUT_EXISTS,
    OUT_NOT_FOUND,
    OUT_DELETED,
    OUT_TOUCHED,
    OUT_NUMBER,
    OUT_OK,
    OUT_VERSION,
    OUT_NOOP,
    OUT_ERROR
  } outcome_t;

  // What key_check does with an operation on a key.
  typedef enum logic [2:0] {D_RESULT, D_VALUE, D_STORE, D_JOIN, D_COUNT, D_TOUCH, D_REMOVE, D_VIVIFY} do_t;

  // Text commands, by how mc_parse reads their lines.
  typedef enum logic [3:0] {
    C_GET, C_GAT, C_STORE, C_CAS, C_DELETE, C_DELTA, C_TOUCH, C_FLUSH, C_VERBOSITY, C_VERSION,
    C_NOOP, C_QUIT, C_UNSUPPORTED, C_STOP, C_UNKNOWN
  } command_t;
  // Of those with 8 bytes and more, by their first 8.
  typedef enum logic [2:0] {
    LONG_NONE, LONG_FLUSH, LONG_VERBOSITY, LONG_WHOLE, LONG_DEBUGTIME, LONG_CRAWLER, LONG_CERTS, LONG_MEMLIMIT
  } long_t;
  // Layouts of binary requests.
  typedef enum logic [2:0] {FORM_UNKNOWN, FORM_BARE, FORM_KEY, FORM_KEYTIME, FORM_STORE, FORM_JOIN, FORM_DELTA, FORM_FLUSH} form_t;

  // A word of a text line, or a part of one.
  typedef struct packed {
    logic short_line;   // it begins a line of less than three bytes, or of three with its end
    logic ends_line;    // nothing of the line is behind it
    logic ends;         // the word ends with it
    logic minus;        // its first byte is one
    logic [7:0] digit;  // bytes that are one
    logic [3:0] len;    // bytes; 0: the word has ended before, or is empty
    logic [63:0] data;  // what is behind them is anything
  } piece_t;

  // What a word of a text line is.
  typedef struct packed {
    logic is_key;
    logic is_number;
    logic is_signed;
  } field_t;
  // A piece, and what it is as a line's first word.
  typedef struct packed {
    command_t named;
    op_t named_op;
    long_t begins;
    logic [7:0] completes;
    logic noreply;
    piece_t piece;
  } word_t;

  // What the network blocks keep of a request until its reply leaves.
  typedef struct packed {
    logic [47:0] dst_mac;
    logic [47:0] src_mac;
    logic [1:0] vlans;
    logic [31:0] vlan0;
    logic [31:0] vlan1;
  } eth_ctx_t;

  typedef struct packed {
    eth_ctx_t eth;
    logic v6;
    logic [127:0] src_ip;  // IPv4 in bits 31:0
    logic [127:0] dst_ip;
    logic [15:0] address_sum;
    logic [15:0] src_port;
    logic [15:0] dst_port;
    logic has_checksum;
    logic [15:0] request_id;
  } ctx_t;

  // Who waits for the reply to a request, and how he knows it.
  typedef struct packed {
    logic v6;
    logic [127:0] ip;
    logic [15:0] port;
    logic [15:0] request_id;
  } asker_t;

  // What the network blocks find out about frames: eth_rx of each frame, and udp_rx of each that
  // eth_rx has passed on, both in the order of the frames.
  typedef struct packed {
    logic eth_dropped;
    logic eth_passed;
    logic eth_may_change;  // with eth_dropped: another reader may find requests in it
    logic udp_dropped;
    logic udp_passed;
    logic udp_may_change;  // with udp_dropped: likewise
    asker_t asker;         // with udp_passed
  } sorting_t;

  // What mc_parse must know of a datagram in advance.
  typedef struct packed {
    logic [11:0] size;     // bytes
    logic [11:0] lf_end;   // bytes up to and with the last LF; 0: no LF
  } info_t;

  // One operation. Its key and its value are in streams of their own.
  typedef struct packed {
    op_t op;
    err_t err;
    logic bin;
    logic quiet;
    logic ret_cas;
    logic ret_key;
    logic touch;     // gat
    logic cas_cmp;
    logic vivify;
    logic last_key;
    logic own_cas;   // the item that is stored gets `cas` as its id
    logic eod;       // the last operation of its datagram
    logic [7:0] opcode;
    logic [31:0] opaque;
    logic [31:0] flags;
    logic [31:0] exptime;
    logic [63:0] cas;
    logic [63:0] delta;
    logic [63:0] initial_value;
    logic [7:0] klen;
    logic [5:0] kbeats;
    logic [11:0] vlen;
    logic [8:0] vbeats;
  } meta_t;

  // What a reader of mc_parse does in a cycle.
  typedef struct packed {
    logic wants;             // bytes of the window, if these and room are there
    logic [3:0] take_bytes;
    logic take_ends;         // with `wants`: they reach the beat's end
    logic emit;              // the operation `op`
    meta_t op;
    logic ends_value;        // with emit: the next two bytes must be CR and LF
    logic quits;             // the rest of the datagram is not read, and nothing is emitted for it
    logic push_key;          // bytes to the streams
    logic [3:0] key_part;
    logic push_value;
    logic [3:0] value_part;
  } reading_t;

  typedef struct packed {
    meta_t op;
    logic [31:0] row_hash;
    logic [31:0] tag_hash;
  } hashed_t;

  // What is known of an operation, and of the item that has its tag, once the whole key has been compared.
  typedef struct packed {
    logic reads;           // there is such an item
    logic match;           // it has the key
    logic alive;           // and has not expired
    logic any_cas;         // the operation has a CAS id that is not zero
    logic cas_differs;     // it compares CAS ids, and the item has another one
    logic has_words;       // words of the item's value come
    logic keeps;           // the operation's key comes
    logic [31:0] flags;    // these five are the item's
    logic [31:0] item_expiry;
    logic [63:0] cas;
    logic [11:0] vlen;
    logic [12:0] joined;   // bytes of both values, for append and prepend
    logic [5:0] kbeats;    // of the key that mc_format receives
    logic [31:0] expiry;   // of an item that is stored
    logic [39:0] generation;
  } found_t;

  // The result of one operation, for mc_format.
  typedef struct packed {
    outcome_t outcome;
    op_t op;
    err_t err;
    logic bin;
    logic quiet;
    logic ret_cas;
    logic ret_key;
    logic last_key;
    logic eod;
    logic [7:0] opcode;
    logic [31:0] opaque;
    logic [31:0] flags;
    logic [63:0] cas;     // with OUT_NUMBER of text unused
    logic [63:0] number;
    logic [7:0] klen;
    logic [5:0] kbeats;   // beats of the key that mc_format receives
    logic [11:0] vlen;
    logic [8:0] vbeats;
  } result_t;

  // What mc_format does with a result, in this order: pieces of a reply, or none.
  typedef enum logic [3:0] {
    F_IDLE, F_SKIP, F_DROP, F_FIRST, F_KEY, F_FLAGS, F_SIZE, F_CAS, F_VALUE, F_TAIL, F_TEXT,
    F_NUMBER, F_HEAD, F_EXTRAS
  } piece_kind_t;
  // Texts of replies.
  typedef enum logic [4:0] {
    T_END, T_STORED, T_NOT_STORED, T_EXISTS, T_NOT_FOUND, T_DELETED, T_TOUCHED, T_OK, T_VERSION,
    T_MN, T_ERROR, T_FORMAT, T_DATA, T_EXPTIME, T_DELTA, T_NONNUM, T_UNSUPPORTED, T_TOOLARGE,
    B_NOT_FOUND, B_EXISTS, B_TOOLARGE, B_INVALID, B_NOT_STORED, B_NONNUM, B_UNKNOWN, B_VERSION
  } text_t;
  // What a result asks for.
  typedef struct packed {
    result_t result;       // `number` is what is shown first: flags, or the number of incr
    text_t text;
    logic [7:0] status;
    logic text_follows;
    logic has_extras;
    logic has_cas;
    logic shows_key;
    logic bare;
    logic last_key_word;
    logic last_value_word;
    logic [2:0] number_below;  // 2^32, 4096, 10
    logic [2:0] cas_below;
    logic [12:0] body;     // of a binary reply without a text: its size
    logic [11:0] vlen_digits;  // of the upper seven bits of vlen
    piece_kind_t first;
  } task_t;
  // Digits of a reply and what follows them, a blank or the line's end.
  typedef struct packed {
    logic with_flag;       // flags of one digit, and a blank, come first
    logic blank_behind;
    logic all;             // all digits: something follows them
    logic [3:0] flag;
    logic [3:0] count;
    logic [31:0] digits;
  } number_t;

  // What the counters of csr count, the first one in the last field.
  typedef struct packed {
    logic reply_dropped;
    logic frame_sent;
    logic datagram_done;
    logic malformed;
    logic unsupported;
    logic fragment;
    logic bad_checksum;
    logic truncated;
    logic not_for_us;
    logic request;
    logic frame;
  } front_events_t;
  typedef struct packed {
    logic other_key;  // a tag met another key
    logic stalled;    // by a hazard
    logic store;
    logic miss;
    logic hit;
  } store_events_t;

  typedef struct packed {
    logic flushed;       // all copies, for a frame that may change anything
    logic fill_dead;     // a reply that came too late to be copied
    logic filled;
    logic forwarded;     // a frame, to the host
    logic answered;      // a request
  } nic_events_t;

  // The slot of fill_table.
  localparam int FILL_LOG = 6;
  function automatic logic [FILL_LOG-1:0] slot_of(asker_t asker);
    logic [167:0] bits;
    bits = {7'd0, asker};
    slot_of = '0;
    for (int i = 0; i < 28; i++) slot_of ^= bits[FILL_LOG*i+:FILL_LOG];
  endfunction

  // Words of 8 bytes that the longest item takes.
  function automatic int words_max(int key_max, int value_max);
    words_max = HEADER_BEATS + (key_max + 7) / 8 + (value_max + 7) / 8;
  endfunction
  // Bits of an item's number of words, and so of a word's number in a half of a slot.
  function automatic int bits_of_size(int key_max, int value_max);
    bits_of_size = $clog2(words_max(key_max, value_max) + 1);
  endfunction

  function automatic logic is_write(op_t op, logic touch);
    case (op)
      OP_SET, OP_ADD, OP_REPLACE, OP_APPEND, OP_PREPEND, OP_DELETE, OP_INCR, OP_DECR, OP_TOUCH:
        is_write = 1'b1;
      OP_GET: is_write = touch;
      default: is_write = 1'b0;
    endcase
  endfunction

  function automatic logic has_key(op_t op);
    case (op)
      OP_GET, OP_SET, OP_ADD, OP_REPLACE, OP_APPEND, OP_PREPEND, OP_DELETE, OP_INCR, OP_DECR,
      OP_TOUCH:
        has_key = 1'b1;
      default: has_key = 1'b0;
    endcase
  endfunction

  // What the word `at` of a line is, after the command.
  function automatic field_t field_of(command_t line, logic [2:0] at);
    field_of = '0;
    case (line)
      C_GET: field_of.is_key = 1'b1;
      C_GAT: begin
        field_of.is_number = at == 3'd0;
        field_of.is_signed = at == 3'd0;
        field_of.is_key = at != 3'd0;
      end
      C_STORE, C_CAS: begin
        field_of.is_key = at == 3'd0;
        field_of.is_number = (at >= 3'd1 && at <= 3'd3) || (at == 3'd4 && line == C_CAS);
        field_of.is_signed = at == 3'd2 || at == 3'd3;
      end
      C_DELETE: field_of.is_key = at == 3'd0;
      C_DELTA: begin
        field_of.is_key = at == 3'd0;
        field_of.is_number = at == 3'd1;
      end
      C_TOUCH: begin
        field_of.is_key = at == 3'd0;
        field_of.is_number = at == 3'd1;
        field_of.is_signed = 1'b1;
      end
      C_FLUSH: begin
        field_of.is_number = at == 3'd0;
        field_of.is_signed = 1'b1;
      end
      C_VERBOSITY: field_of.is_number = at == 3'd0;
      default: ;
    endcase
  endfunction

  // Whether a number of bytes, 1 to 8, from byte `at` of a beat on, reaches its end.
  function automatic logic reach_end(logic [2:0] at, logic [3:0] bytes);
    logic [3:0] sum;
    sum = {1'b0, at} + {1'b0, bytes[2:0]};
    reach_end = bytes[3] || sum[3];
  endfunction

  // The sum of the four 16-bit words of a beat, each in network order, with end-around carry.
  function automatic logic [15:0] fold32(logic [31:0] sum);
    logic [16:0] once;
    once = {1'b0, sum[15:0]} + {1'b0, sum[31:16]};
    fold32 = once[15:0] + {15'd0, once[16]};
  endfunction

  function automatic logic [17:0] beat_sum(logic [63:0] d);
    beat_sum = {2'd0, d[7:0], d[15:8]} + {2'd0, d[23:16], d[31:24]} +
               {2'd0, d[39:32], d[47:40]} + {2'd0, d[55:48], d[63:56]};
  endfunction

  function automatic logic [63:0] byte_mask(logic [3:0] n);
    for (int i = 0; i < 8; i++) byte_mask[8*i+:8] = (4'(i) < n) ? 8'hff : 8'h00;
  endfunction

  function automatic logic [8:0] beats_of(logic [11:0] bytes);
    beats_of = bytes[11:3] + {8'd0, bytes[2:0] != 3'd0};
  endfunction

  function automatic logic [15:0] swap16(logic [15:0] x);
    swap16 = {x[7:0], x[15:8]};
  endfunction
  function automatic logic [31:0] swap32(logic [31:0] x);
    swap32 = {x[7:0], x[15:8], x[23:16], x[31:24]};
  endfunction
  function automatic logic [63:0] swap64(logic [63:0] x);
    swap64 = {swap32(x[31:0]), swap32(x[63:32])};
  endfunction

  // The second in which an exptime ends; 1 has always passed. 0: never.
  function automatic logic [31:0] expiry_second(logic [31:0] exptime, logic [31:0] t, logic [31:0] start);
    if (exptime == 32'd0) expiry_second = 32'd0;
    else if (exptime[31]) expiry_second = 32'd1;
    else if (exptime <= RELATIVE_MAX) expiry_second = t + exptime;
    else if (exptime <= start) expiry_second = 32'd1;
    else expiry_second = exptime - start;
  endfunction

  // Decimal digits of a number to those of its double, each bit from four: a digit that is 5 or more gives a
  // carry, and its double's last digit without the carry from below is twice `half`.
  function automatic logic [79:0] doubled(logic [79:0] digits, logic carry);
    logic [3:0] d;
    logic [2:0] half;
    logic from_below;
    from_below = carry;
    for (int i = 0; i < 20; i++) begin
      d = digits[4*i+:4];
      half[2] = (d[2] && !d[1] && !d[0]) || (d[3] && d[0]);
      half[1] = (!d[3] && !d[2] && d[1]) || (d[2] && d[1] && d[0]) || (d[3] && !d[0]);
      half[0] = (!d[3] && !d[2] && d[0]) || (d[2] && d[1] && !d[0]) || (d[3] && !d[0]);
      doubled[4*i+:4] = {half, from_below};
      from_below = d[3] || (d[2] && (d[1] || d[0]));
    end
  endfunction

  // Decimal digits of a number with more bits behind it, the first one at the top.
  function automatic logic [15:0] with_bits(logic [15:0] digits, logic [2:0] bits, int count);
    logic [79:0] all;
    all = {64'd0, digits};
    for (int i = 2; i >= 0; i--) if (i < count) all = doubled(all, bits[i]);
    with_bits = all[15:0];
  endfunction

endpackage
