// SPDX-License-Identifier: Apache-2.0
//
// Composes replies from results, keys and values: the payload of a datagram's reply, in packed
// beats. The last beat of a reply has `out_last`; it has no bytes where the reply is empty or ends
// with the beat before.
module mc_format
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        result_valid,
    output logic        result_ready,
    input  result_t     result,
    input  logic        key_valid,
    output logic        key_ready,
    input  logic [63:0] key_data,
    input  logic        value_valid,
    output logic        value_ready,
    input  logic [63:0] value_data,
    output logic        out_valid,
    input  logic        out_ready,
    output logic [63:0] out_data,
    output logic [3:0]  out_bytes,
    output logic        out_last
);
  typedef enum logic [3:0] {
    F_IDLE, F_SKIP, F_DROP, F_FIRST, F_KEY, F_FLAGS, F_SIZE, F_CAS, F_VALUE, F_TAIL, F_FETCH,
    F_TEXT, F_NUMBER, F_HEAD, F_EXTRAS
  } state_t;
  state_t state;

  // --- Texts, in chunks of 8 bytes.
  typedef enum logic [4:0] {
    T_END, T_STORED, T_NOT_STORED, T_EXISTS, T_NOT_FOUND, T_DELETED, T_TOUCHED, T_OK, T_VERSION,
    T_MN, T_ERROR, T_FORMAT, T_DATA, T_EXPTIME, T_DELTA, T_NONNUM, T_UNSUPPORTED, T_TOOLARGE,
    B_NOT_FOUND, B_EXISTS, B_TOOLARGE, B_INVALID, B_NOT_STORED, B_NONNUM, B_UNKNOWN, B_VERSION
  } text_t;
  localparam int TEXT_BITS = 512;
  // A text's bytes, the first one at the top, and its size.
  function automatic logic [TEXT_BITS+6:0] text_of(text_t t);
    logic [TEXT_BITS-1:0] s;
    int n;
    case (t)
      T_END: begin n = 5; s = "END\015\n"; end
      T_STORED: begin n = 8; s = "STORED\015\n"; end
      T_NOT_STORED: begin n = 12; s = "NOT_STORED\015\n"; end
      T_EXISTS: begin n = 8; s = "EXISTS\015\n"; end
      T_NOT_FOUND: begin n = 11; s = "NOT_FOUND\015\n"; end
      T_DELETED: begin n = 9; s = "DELETED\015\n"; end
      T_TOUCHED: begin n = 9; s = "TOUCHED\015\n"; end
      T_OK: begin n = 4; s = "OK\015\n"; end
      T_VERSION: begin n = 26; s = "VERSION 1.6.45-warpcache\015\n"; end
      T_MN: begin n = 4; s = "MN\015\n"; end
      T_ERROR: begin n = 7; s = "ERROR\015\n"; end
      T_FORMAT: begin n = 38; s = "CLIENT_ERROR bad command line format\015\n"; end
      T_DATA: begin n = 29; s = "CLIENT_ERROR bad data chunk\015\n"; end
      T_EXPTIME: begin n = 39; s = "CLIENT_ERROR invalid exptime argument\015\n"; end
      T_DELTA: begin n = 45; s = "CLIENT_ERROR invalid numeric delta argument\015\n"; end
      T_NONNUM: begin n = 62; s = "CLIENT_ERROR cannot increment or decrement non-numeric value\015\n"; end
      T_UNSUPPORTED: begin n = 28; s = "SERVER_ERROR not supported\015\n"; end
      T_TOOLARGE: begin n = 41; s = "SERVER_ERROR object too large for cache\015\n"; end
      B_NOT_FOUND: begin n = 9; s = "Not found"; end
      B_EXISTS: begin n = 20; s = "Data exists for key."; end
      B_TOOLARGE: begin n = 10; s = "Too large."; end
      B_INVALID: begin n = 17; s = "Invalid arguments"; end
      B_NOT_STORED: begin n = 11; s = "Not stored."; end
      B_NONNUM: begin n = 47; s = "Non-numeric server-side value for incr or decr"; end
      B_UNKNOWN: begin n = 15; s = "Unknown command"; end
      default: begin n = 16; s = "1.6.45-warpcache"; end
    endcase
    if (t == B_NONNUM) n = 46;
    text_of = {7'(n), s << (TEXT_BITS - 8 * n)};
  endfunction
  localparam int TEXTS = 26;
  localparam int CHUNKS = 128;
  typedef logic [TEXTS-1:0][6:0] places_t;
  typedef logic [CHUNKS-1:0][63:0] chunks_t;
  function automatic logic [6:0] size_of(text_t t);
    logic [TEXT_BITS+6:0] both;
    both = text_of(t);
    size_of = both[TEXT_BITS+6-:7];
  endfunction
  // The first chunk of each text, one behind the other, and all chunks; a text's first byte is at the bottom.
  function automatic places_t all_places();
    logic [6:0] at;
    at = '0;
    for (int t = 0; t < TEXTS; t++) begin
      all_places[t] = at;
      at = at + ((size_of(text_t'(t)) + 7'd7) >> 3);
    end
  endfunction
  function automatic chunks_t all_chunks();
    logic [TEXT_BITS-1:0] rest;
    int at;
    at = 0;
    all_chunks = '0;
    for (int t = 0; t < TEXTS; t++) begin
      rest = TEXT_BITS'(text_of(text_t'(t)));
      for (int n = 0; n < 8; n++) begin
        if (7'(8 * n) < size_of(text_t'(t))) begin
          all_chunks[at] = swap64(rest[TEXT_BITS-1-:64]);
          rest = rest << 64;
          at = at + 1;
        end
      end
    end
  endfunction
  function automatic places_t all_sizes();
    for (int t = 0; t < TEXTS; t++) all_sizes[t] = size_of(text_t'(t));
  endfunction
  localparam places_t PLACES = all_places();
  localparam places_t SIZES = all_sizes();
  localparam chunks_t TEXT = all_chunks();

  result_t q;
  text_t text, text_next;
  logic [7:0] status, status_next;
  logic silent, has_text;
  // What the result in `result` asks for.
  always_comb begin
    text_next = T_END;
    status_next = 8'h00;
    has_text = 1'b1;
    if (!result.bin) begin
      case (result.outcome)
        OUT_STORED: text_next = T_STORED;
        OUT_NOT_STORED: text_next = T_NOT_STORED;
        OUT_EXISTS: text_next = T_EXISTS;
        OUT_NOT_FOUND: text_next = T_NOT_FOUND;
        OUT_DELETED: text_next = T_DELETED;
        OUT_TOUCHED: text_next = T_TOUCHED;
        OUT_OK: text_next = T_OK;
        OUT_VERSION: text_next = T_VERSION;
        OUT_NOOP: text_next = T_MN;
        OUT_ERROR:
        case (result.err)
          ERR_UNKNOWN: text_next = T_ERROR;
          ERR_DATA: text_next = T_DATA;
          ERR_EXPTIME: text_next = T_EXPTIME;
          ERR_DELTA: text_next = T_DELTA;
          ERR_NONNUM: text_next = T_NONNUM;
          ERR_UNSUPPORTED: text_next = T_UNSUPPORTED;
          ERR_TOOLARGE: text_next = T_TOOLARGE;
          default: text_next = T_FORMAT;
        endcase
        OUT_MISS: has_text = result.last_key;
        OUT_NONE, OUT_HIT, OUT_NUMBER: has_text = 1'b0;
        default: ;
      endcase
    end else begin
      case (result.outcome)
        OUT_MISS, OUT_NOT_FOUND: begin
          status_next = 8'h01;
          text_next = B_NOT_FOUND;
          has_text = !(result.outcome == OUT_MISS && result.ret_key);
        end
        OUT_EXISTS: begin
          status_next = 8'h02;
          text_next = B_EXISTS;
        end
        OUT_NOT_STORED:
        case (result.op)
          OP_ADD: begin
            status_next = 8'h02;
            text_next = B_EXISTS;
          end
          OP_REPLACE: begin
            status_next = 8'h01;
            text_next = B_NOT_FOUND;
          end
          default: begin
            status_next = 8'h05;
            text_next = B_NOT_STORED;
          end
        endcase
        OUT_VERSION: text_next = B_VERSION;
        OUT_ERROR:
        case (result.err)
          ERR_UNKNOWN, ERR_UNSUPPORTED: begin
            status_next = 8'h81;
            text_next = B_UNKNOWN;
          end
          ERR_TOOLARGE: begin
            status_next = 8'h03;
            text_next = B_TOOLARGE;
          end
          ERR_NONNUM: begin
            status_next = 8'h06;
            text_next = B_NONNUM;
          end
          default: begin
            status_next = 8'h04;
            text_next = B_INVALID;
          end
        endcase
        default: has_text = 1'b0;
      endcase
    end
    silent = 1'b0;
    if (result.outcome == OUT_NONE) silent = 1'b1;
    else if (!result.bin) silent = result.quiet;
    else if (result.quiet) begin
      case (result.outcome)
        OUT_MISS, OUT_STORED, OUT_DELETED, OUT_NUMBER, OUT_OK, OUT_NOOP: silent = 1'b1;
        default: ;
      endcase
    end
  end

  // --- The result in progress. The next one is taken in the cycle in which its last piece leaves.
  logic load, done;
  logic [6:0] text_at;      // chunk
  logic [6:0] text_bytes;   // that are left
  logic last_chunk;
  logic [12:0] body_before; // of a binary reply without a text: its size, without extras
  logic [12:0] body_size;
  logic has_extras, shows_key, has_cas, bare, text_follows;
  logic [5:0] key_left;     // words
  logic [8:0] value_left;
  logic last_key_word, last_value_word, no_value;
  assign result_ready = state == F_IDLE || done;
  assign load = result_valid && result_ready;
  assign no_value = q.vlen == 12'd0;
  logic key_next, hit_next, extras_next;
  assign hit_next = result.outcome == OUT_HIT;
  assign extras_next = hit_next || result.outcome == OUT_TOUCHED;
  assign key_next = result.ret_key && (hit_next || result.outcome == OUT_MISS);
  assign body_size = text_follows ? {6'd0, SIZES[text]} : body_before + {10'd0, has_extras, 2'b00};

  // --- Numbers: flags or the number of incr in the one, the size in the other; the CAS id
  // afterwards in the first.
  logic start_cas, take_a, done_a, done_b, last_a;
  logic [31:0] digits_a, digits_b;
  logic [4:0] count_a, count_b;
  decimal number_a (
      .clk, .rst, .start(load || start_cas),
      .value(start_cas ? q.cas : result.outcome == OUT_NUMBER ? result.number : {32'd0, result.flags}),
      .take(take_a), .done(done_a), .digits(digits_a), .count(count_a)
  );
  decimal #(.WIDE(1'b0)) number_b (
      .clk, .rst, .start(load), .value({52'd0, result.vlen}), .take(1'b0), .done(done_b), .digits(digits_b),
      .count(count_b)
  );
  assign last_a = count_a <= 5'd8;
  logic one_digit;  // flags of one digit go with the size
  assign one_digit = count_a == 5'd1;

  // Digits and what follows them, a blank or the line's end: at most eight digits, so ten bytes.
  logic of_size, blank_behind, number_last;
  logic [3:0] number_count;
  logic [31:0] number_digits;
  logic [79:0] number_text;
  logic [3:0] number_bytes;
  assign of_size = state == F_SIZE || (state == F_FLAGS && one_digit);
  assign number_digits = of_size ? digits_b : digits_a;
  assign number_count = of_size ? count_b[3:0] : count_a[3:0];
  assign number_last = of_size || last_a;
  assign blank_behind = of_size ? q.ret_cas : state == F_FLAGS;
  assign number_bytes = !number_last ? 4'd8 : number_count + (blank_behind ? 4'd1 : 4'd2);
  always_comb begin
    number_text = '0;
    for (int i = 0; i < 10; i++) begin
      if (i < 8 && (!number_last || 4'(i) < number_count)) number_text[8*i+:8] = {4'h3, number_digits[4*(7-(i&7))+:4]};
      else if (number_last && number_count == 4'(i)) number_text[8*i+:8] = blank_behind ? 8'h20 : 8'h0d;
      else if (number_last && number_count == 4'(i - 1) && !blank_behind) number_text[8*i+:8] = 8'h0a;
    end
  end

  // --- A key's word, and in a text reply a blank behind the key.
  logic [71:0] key_text;
  logic [3:0] key_bytes;  // of the word
  assign key_bytes = last_key_word && q.klen[2:0] != 3'd0 ? {1'b0, q.klen[2:0]} : 4'd8;
  always_comb begin
    key_text = {8'd0, key_data};
    for (int i = 1; i < 9; i++) if (!q.bin && last_key_word && q.klen[2:0] == 3'(i)) key_text[8*i+5] = 1'b1;
  end

  // --- What ends an item of a text reply goes with its last bytes.
  localparam logic [55:0] END_TEXT = {8'h0a, 8'h0d, "D", "N", "E", 8'h0a, 8'h0d};
  logic [119:0] tail;
  logic [3:0] value_bytes;
  logic [4:0] tail_bytes;
  assign value_bytes = last_value_word && q.vlen[2:0] != 3'd0 ? {1'b0, q.vlen[2:0]} : 4'd8;
  assign tail_bytes = q.last_key ? 5'd7 : 5'd2;
  always_comb begin
    tail = '0;
    for (int n = 1; n < 9; n++)
      if (q.vlen[2:0] == 3'(n)) tail = {64'd0, q.last_key ? END_TEXT : {40'd0, END_TEXT[15:0]}} << (8 * n);
  end

  // --- Pieces. Bytes above a piece's size are zero.
  logic piece_valid, piece_ready, piece_last;
  logic [127:0] piece;
  logic [4:0] piece_bytes;
  logic ends;      // this piece is the result's last
  logic sent;
  assign sent = piece_valid && piece_ready;
  // What composes pieces and what joins them are a cycle each.
  logic joins, join_ready, join_last;
  logic [127:0] join_piece;
  logic [4:0] join_bytes;
  skid_buffer #(.W(134)) composed (
      .clk, .rst, .in_valid(piece_valid), .in_ready(piece_ready), .in_data({piece_last, piece_bytes, piece}),
      .out_valid(joins), .out_ready(join_ready), .out_data({join_last, join_bytes, join_piece})
  );
  packer pieces (
      .clk, .rst, .in_valid(joins), .in_ready(join_ready), .in_data(join_piece), .in_bytes(join_bytes),
      .in_last(join_last), .out_valid, .out_ready, .out_data, .out_bytes, .out_last
  );

  always_comb begin
    piece_valid = 1'b0;
    piece = '0;
    piece_bytes = 5'd0;
    ends = 1'b0;
    case (state)
      F_SKIP: begin
        // A result without a reply may still end its datagram.
        piece_valid = q.eod;
        ends = 1'b1;
      end
      F_FIRST: begin
        piece_valid = key_valid;
        piece = {8'd0, key_text, " ", "E", "U", "L", "A", "V"};
        piece_bytes = {1'b0, key_bytes} + 5'd6 + {4'd0, last_key_word};
      end
      F_KEY: begin
        piece_valid = key_valid;
        piece = {56'd0, key_text};
        piece_bytes = {1'b0, key_bytes} + {4'd0, !q.bin && last_key_word};
        ends = q.bin && last_key_word && no_value;
      end
      F_FLAGS: begin
        piece_valid = done_a && (done_b || !one_digit);
        if (one_digit) begin
          piece = {64'd0, number_text[47:0], 8'h20, 4'h3, digits_a[31:28]};
          piece_bytes = {1'b0, number_bytes} + 5'd2;
        end else begin
          piece = {48'd0, number_text};
          piece_bytes = {1'b0, number_bytes};
        end
      end
      F_SIZE: begin
        piece_valid = done_b;
        piece = {48'd0, number_text};
        piece_bytes = {1'b0, number_bytes};
      end
      F_CAS: begin
        piece_valid = done_a;
        piece = {48'd0, number_text};
        piece_bytes = {1'b0, number_bytes};
      end
      F_VALUE: begin
        piece_valid = value_valid;
        piece = {64'd0, value_data};
        piece_bytes = {1'b0, value_bytes};
        ends = last_value_word;
        if (!q.bin && last_value_word) begin
          piece = {8'd0, tail} | {64'd0, value_data};
          piece_bytes = {1'b0, value_bytes} + tail_bytes;
        end
      end
      F_TAIL: begin
        piece_valid = 1'b1;
        piece = {72'd0, tail[119:64]};
        piece_bytes = tail_bytes;
        ends = 1'b1;
      end
      F_TEXT: begin
        piece_valid = 1'b1;
        piece = {64'd0, TEXT[text_at]};
        piece_bytes = last_chunk ? {1'b0, text_bytes[3:0]} : 5'd8;
        ends = last_chunk;
      end
      F_NUMBER: begin
        piece_valid = q.bin || done_a;
        piece = q.bin ? {64'd0, swap64(q.number)} : {48'd0, number_text};
        piece_bytes = q.bin ? 5'd8 : {1'b0, number_bytes};
        ends = q.bin || last_a;
      end
      F_HEAD: begin
        piece_valid = 1'b1;
        piece = {q.opaque, swap32({19'd0, body_size}), status, 16'd0, has_extras ? 8'd4 : 8'd0,
                 shows_key ? {q.klen, 8'd0} : 16'd0, q.opcode, 8'h81};
        piece_bytes = 5'd16;
      end
      F_EXTRAS: begin
        // The CAS id, and flags.
        piece_valid = 1'b1;
        piece = {32'd0, has_extras ? swap32(q.flags) : 32'd0, has_cas ? swap64(q.cas) : 64'd0};
        piece_bytes = has_extras ? 5'd12 : 5'd8;
        ends = bare;
      end
      default: ;
    endcase
    piece_last = ends && q.eod;
  end
  // `ends` and `sent`, but without numbers that end nothing.
  always_comb begin
    case (state)
      F_SKIP: done = piece_ready || !q.eod;
      F_KEY: done = piece_ready && key_valid && q.bin && last_key_word && no_value;
      F_VALUE: done = piece_ready && value_valid && last_value_word;
      F_TAIL: done = piece_ready;
      F_TEXT: done = piece_ready && last_chunk;
      F_NUMBER: done = piece_ready && (q.bin || (done_a && last_a));
      F_EXTRAS: done = piece_ready && bare;
      default: done = 1'b0;
    endcase
  end
  assign key_ready = state == F_DROP || ((state == F_FIRST || state == F_KEY) && piece_ready);
  assign value_ready = state == F_VALUE && piece_ready;
  assign start_cas = state == F_FLAGS && sent && last_a && q.ret_cas;
  assign take_a = sent && !of_size && (state == F_FLAGS || state == F_CAS || state == F_NUMBER);

  state_t first_state, value_state;
  always_comb begin
    if (!result_valid) first_state = F_IDLE;
    else if (silent) first_state = result.kbeats == 6'd0 ? F_SKIP : F_DROP;
    else if (result.bin) first_state = F_HEAD;
    else if (result.outcome == OUT_HIT) first_state = F_FIRST;
    else if (result.kbeats != 6'd0) first_state = F_DROP;
    else if (result.outcome == OUT_NUMBER) first_state = F_NUMBER;
    else first_state = has_text ? F_FETCH : F_SKIP;
  end
  assign value_state = no_value ? F_TAIL : F_VALUE;

  always_ff @(posedge clk) begin
    if (load) begin
      q <= result;
      status <= status_next;
      text <= text_next;
      text_follows <= !silent && has_text;
      body_before <= (hit_next ? {1'b0, result.vlen} : {9'd0, result.outcome == OUT_NUMBER, 3'd0}) +
                     (key_next ? {5'd0, result.klen} : 13'd0);
      bare <= hit_next ? !key_next && result.vlen == 12'd0 : !key_next && !has_text && result.outcome != OUT_NUMBER;
      has_extras <= extras_next;
      has_cas <= extras_next || result.outcome == OUT_STORED || result.outcome == OUT_NUMBER;
      shows_key <= key_next;
      key_left <= result.kbeats;
      last_key_word <= result.kbeats == 6'd1;
      value_left <= result.vbeats;
      last_value_word <= result.vbeats == 9'd1;
    end else begin
      if (key_valid && key_ready) begin
        key_left <= key_left - 6'd1;
        last_key_word <= key_left == 6'd2;
      end
      if (value_valid && value_ready) begin
        value_left <= value_left - 9'd1;
        last_value_word <= value_left == 9'd2;
      end
    end
    if (state != F_TEXT) begin
      text_at <= PLACES[text];
      text_bytes <= SIZES[text];
      last_chunk <= SIZES[text] <= 7'd8;
    end else if (sent) begin
      text_at <= text_at + 7'd1;
      text_bytes <= text_bytes - 7'd8;
      last_chunk <= text_bytes <= 7'd16;
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      state <= F_IDLE;
    end else if (result_ready) begin
      state <= first_state;
    end else begin
      case (state)
        // Keys that have been forwarded although the reply does not show them.
        F_DROP: if (key_valid && last_key_word) state <= text_follows ? F_TEXT : F_SKIP;
        F_FIRST: if (sent) state <= last_key_word ? F_FLAGS : F_KEY;
        F_KEY: if (sent && last_key_word) state <= q.bin ? F_VALUE : F_FLAGS;
        F_FLAGS: if (sent && last_a) state <= !one_digit ? F_SIZE : q.ret_cas ? F_CAS : value_state;
        F_SIZE: if (sent) state <= q.ret_cas ? F_CAS : value_state;
        F_CAS: if (sent && last_a) state <= value_state;
        F_FETCH: state <= F_TEXT;
        F_HEAD: if (sent) state <= F_EXTRAS;
        F_EXTRAS:
        if (sent) begin
          if (shows_key) state <= F_KEY;
          else if (q.outcome == OUT_HIT) state <= F_VALUE;
          else state <= q.outcome == OUT_NUMBER ? F_NUMBER : F_TEXT;
        end
        default: ;
      endcase
    end
  end

  logic unused;
  assign unused = (^q.kbeats) ^ (^q.vbeats) ^ count_b[4];
endmodule
