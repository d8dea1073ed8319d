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
    F_IDLE, F_SKIP, F_DROP, F_FIRST, F_KEY, F_FLAGS, F_SIZE, F_CAS, F_VALUE, F_TAIL, F_TEXT,
    F_NUMBER, F_HEAD, F_EXTRAS
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
  // An index would make a memory of it, and of the register in front its address: a late one.
  function automatic logic [6:0] chosen_of(places_t all, text_t t);
    chosen_of = '0;
    for (int i = 0; i < TEXTS; i++) if (t == text_t'(i)) chosen_of |= all[i];
  endfunction
  localparam chunks_t TEXT = all_chunks();

  // --- What a result asks for is found out in the cycle before it can be taken.
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
    state_t first;
  } task_t;
  task_t coming, d;
  text_t text_next;
  logic [7:0] status_next;
  logic silent, has_text, key_next, hit_next, extras_next;
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

  assign hit_next = result.outcome == OUT_HIT;
  assign extras_next = hit_next || result.outcome == OUT_TOUCHED;
  assign key_next = result.ret_key && (hit_next || result.outcome == OUT_MISS);
  // Decimal digits of a number with more bits behind it, the first one at the top.
  function automatic logic [15:0] with_bits(logic [15:0] digits, logic [2:0] bits, int count);
    logic [79:0] all;
    all = {64'd0, digits};
    for (int i = 2; i >= 0; i--) if (i < count) all = doubled(all, bits[i]);
    with_bits = all[15:0];
  endfunction
  function automatic logic [11:0] upper_digits(logic [6:0] bits);
    logic [15:0] digits;
    digits = with_bits({13'd0, bits[6:4]}, bits[3:1], 3);
    digits = with_bits(digits, {2'd0, bits[0]}, 1);
    upper_digits = digits[11:0];
  endfunction
  function automatic logic [2:0] class_of(logic [63:0] value);
    class_of[2] = value[63:32] == '0;
    class_of[1] = value[63:12] == '0;
    class_of[0] = value[63:4] == '0 && (!value[3] || value[2:1] == 2'd0);
  endfunction
  always_comb begin
    coming.result = result;
    if (result.outcome != OUT_NUMBER) coming.result.number = {32'd0, result.flags};
    coming.number_below = class_of(coming.result.number);
    coming.cas_below = class_of(result.cas);
    coming.text = text_next;
    coming.status = status_next;
    coming.text_follows = !silent && has_text;
    coming.has_extras = extras_next;
    coming.has_cas = extras_next || result.outcome == OUT_STORED || result.outcome == OUT_NUMBER;
    coming.shows_key = key_next;
    coming.bare = hit_next ? !key_next && result.vlen == 12'd0 : !key_next && !has_text && result.outcome != OUT_NUMBER;
    coming.last_key_word = result.kbeats == 6'd1;
    coming.last_value_word = result.vbeats == 9'd1;
    coming.body = (hit_next ? {1'b0, result.vlen} : {9'd0, result.outcome == OUT_NUMBER, 3'd0}) +
                  ((key_next ? {5'd0, result.klen} : 13'd0) + {10'd0, extras_next, 2'b00});
    coming.vlen_digits = upper_digits(result.vlen[11:5]);
    if (silent) coming.first = result.kbeats == 6'd0 ? F_SKIP : F_DROP;
    else if (result.bin) coming.first = F_HEAD;
    else if (hit_next) coming.first = F_FIRST;
    else if (result.kbeats != 6'd0) coming.first = F_DROP;
    else if (result.outcome == OUT_NUMBER) coming.first = F_NUMBER;
    else coming.first = has_text ? F_TEXT : F_SKIP;
  end
  logic d_valid, d_ready;
  skid_buffer #(.W($bits(task_t))) tasks (
      .clk, .rst, .in_valid(result_valid), .in_ready(result_ready), .in_data(coming), .out_valid(d_valid), .out_ready(d_ready),
      .out_data(d)
  );

  // --- The result in progress. The next one is taken in the cycle in which its last piece leaves.
  result_t q;
  logic [7:0] status;
  logic load, loaded, done;
  text_t text;
  logic [2:0] number_below, cas_below;
  logic piece_valid, piece_ready, piece_last, piece_number;
  logic [12:0] body_size;
  logic has_extras, shows_key, has_cas, bare, text_follows;
  logic [5:0] key_left;     // words
  logic [8:0] value_left;
  logic last_key_word, last_value_word, no_value;
  assign d_ready = state == F_IDLE || done;
  assign load = d_valid && d_ready;

  // --- Its text is fetched from memory while what is in front of it leaves, or in four cycles.
  logic [6:0] text_at;      // chunk
  logic [6:0] text_bytes;   // that are left
  logic fetches, word_valid, word_ready, word_last, text_valid, text_take, text_last;
  logic [63:0] word, text_word;
  logic [3:0] word_bytes, text_word_bytes;
  always_ff @(posedge clk) begin
    if (rst) begin
      fetches <= 1'b0;
      word_valid <= 1'b0;
    end else begin
      if (loaded) fetches <= text_follows;
      else if (word_ready && text_bytes <= 7'd8) fetches <= 1'b0;
      if (word_ready) word_valid <= fetches;
    end
    if (loaded) begin
      text_at <= chosen_of(PLACES, text);
      text_bytes <= chosen_of(SIZES, text);
    end else if (fetches && word_ready) begin
      text_at <= text_at + 7'd1;
      text_bytes <= text_bytes - 7'd8;
    end
    if (word_ready) begin
      word <= TEXT[text_at];
      word_last <= text_bytes <= 7'd8;
      word_bytes <= text_bytes <= 7'd8 ? text_bytes[3:0] : 4'd8;
    end
  end
  skid_buffer #(.W(69)) texts (
      .clk, .rst, .in_valid(word_valid), .in_ready(word_ready), .in_data({word_last, word_bytes, word}), .out_valid(text_valid),
      .out_ready(text_take), .out_data({text_last, text_word_bytes, text_word})
  );
  assign text_take = state == F_TEXT && piece_ready;

  // --- Numbers: flags or the number of incr in the one, the CAS id afterwards. The size, of at most four digits, is there two
  // cycles after its result has been taken, before it is needed.
  logic starts_cas, cas_starts, take_a, done_a, last_a;
  logic one_digit;  // flags of one digit go with the size
  logic [31:0] digits_a;
  logic [4:0] count_a;
  decimal number_a (
      .clk, .rst, .clear(load || starts_cas), .start(loaded || cas_starts), .value(cas_starts ? q.cas : q.number),
      .below(cas_starts ? cas_below : number_below), .take(take_a), .done(done_a), .digits(digits_a), .count(count_a), .is_one(one_digit), .is_last(last_a)
  );
  always_ff @(posedge clk) begin
    loaded <= load && !rst;
    cas_starts <= starts_cas && !rst;
  end
  logic [15:0] size_upper, size_digits, digits_b;
  logic [1:0] size_bits;
  logic [2:0] count_b;
  assign size_digits = with_bits(size_upper, {1'b0, size_bits}, 2);
  always_ff @(posedge clk) begin
    if (load) begin
      size_upper <= with_bits({4'd0, d.vlen_digits}, d.result.vlen[4:2], 3);
      size_bits <= d.result.vlen[1:0];
    end
    if (size_digits[15:12] != 4'd0) {count_b, digits_b} <= {3'd4, size_digits};
    else if (size_digits[11:8] != 4'd0) {count_b, digits_b} <= {3'd3, size_digits[11:0], 4'd0};
    else if (size_digits[7:4] != 4'd0) {count_b, digits_b} <= {3'd2, size_digits[7:0], 8'd0};
    else {count_b, digits_b} <= {3'd1, size_digits[3:0], 12'd0};
  end

  // Digits and what follows them, a blank or the line's end.
  typedef struct packed {
    logic with_flag;       // flags of one digit, and a blank, come first
    logic blank_behind;
    logic all;             // all digits: something follows them
    logic [3:0] flag;
    logic [3:0] count;
    logic [31:0] digits;
  } number_t;
  logic of_size;
  number_t number_part;
  assign of_size = state == F_SIZE || (state == F_FLAGS && one_digit);
  assign number_part.with_flag = state == F_FLAGS && one_digit;
  assign number_part.blank_behind = of_size ? q.ret_cas : state == F_FLAGS;
  assign number_part.all = of_size || last_a;
  assign number_part.flag = digits_a[31:28];
  assign number_part.count = of_size ? {1'b0, count_b} : count_a[3:0];
  assign number_part.digits = of_size ? {digits_b, 16'd0} : digits_a;

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
  logic [127:0] piece;
  logic [4:0] piece_bytes;
  logic ends;      // this piece is the result's last
  logic sent;
  assign sent = piece_valid && piece_ready;
  // What chooses pieces, what makes bytes of digits and what joins pieces are a cycle each.
  logic part_valid, part_ready, part_last, part_number;
  logic [127:0] part;
  logic [4:0] part_bytes;
  skid_buffer #(.W(135)) chosen (
      .clk, .rst, .in_valid(piece_valid), .in_ready(piece_ready), .in_data({piece_number, piece_last, piece_bytes, piece}),
      .out_valid(part_valid), .out_ready(part_ready), .out_data({part_number, part_last, part_bytes, part})
  );
  number_t part_digits;
  logic [79:0] number_text;  // at most eight digits, so ten bytes
  logic [3:0] number_bytes;
  logic [127:0] whole;
  logic [4:0] whole_bytes;
  assign part_digits = part[$bits(number_t)-1:0];
  assign number_bytes = !part_digits.all ? 4'd8 : part_digits.count + (part_digits.blank_behind ? 4'd1 : 4'd2);
  always_comb begin
    number_text = '0;
    for (int i = 0; i < 10; i++) begin
      if (i < 8 && (!part_digits.all || 4'(i) < part_digits.count)) number_text[8*i+:8] = {4'h3, part_digits.digits[4*(7-(i&7))+:4]};
      else if (part_digits.all && part_digits.count == 4'(i)) number_text[8*i+:8] = part_digits.blank_behind ? 8'h20 : 8'h0d;
      else if (part_digits.all && part_digits.count == 4'(i - 1) && !part_digits.blank_behind) number_text[8*i+:8] = 8'h0a;
    end
    whole = part;
    whole_bytes = part_bytes;
    if (part_number) begin
      whole = part_digits.with_flag ? {64'd0, number_text[47:0], 8'h20, 4'h3, part_digits.flag} : {48'd0, number_text};
      whole_bytes = {1'b0, number_bytes} + (part_digits.with_flag ? 5'd2 : 5'd0);
    end
  end
  logic joins, join_ready, join_last;
  logic [127:0] join_piece;
  logic [4:0] join_bytes;
  skid_buffer #(.W(134)) composed (
      .clk, .rst, .in_valid(part_valid), .in_ready(part_ready), .in_data({part_last, whole_bytes, whole}),
      .out_valid(joins), .out_ready(join_ready), .out_data({join_last, join_bytes, join_piece})
  );
  logic joined, joined_ready, joined_last;
  logic [63:0] joined_data;
  logic [3:0] joined_bytes;
  packer pieces (
      .clk, .rst, .in_valid(joins), .in_ready(join_ready), .in_data(join_piece), .in_bytes(join_bytes),
      .in_last(join_last), .out_valid(joined), .out_ready(joined_ready), .out_data(joined_data), .out_bytes(joined_bytes),
      .out_last(joined_last)
  );
  skid_buffer #(.W(69)) replies (
      .clk, .rst, .in_valid(joined), .in_ready(joined_ready), .in_data({joined_last, joined_bytes, joined_data}), .out_valid,
      .out_ready, .out_data({out_last, out_bytes, out_data})
  );

  always_comb begin
    piece_valid = 1'b0;
    piece = '0;
    piece_bytes = 5'd0;
    piece_number = 1'b0;
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
      F_FLAGS, F_CAS: begin
        piece_valid = done_a;
        piece = 128'(number_part);
        piece_number = 1'b1;
      end
      F_SIZE: begin
        piece_valid = 1'b1;
        piece = 128'(number_part);
        piece_number = 1'b1;
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
        piece_valid = text_valid;
        piece = {64'd0, text_word};
        piece_bytes = {1'b0, text_word_bytes};
        ends = text_last;
      end
      F_NUMBER: begin
        piece_valid = q.bin || done_a;
        piece = q.bin ? {64'd0, swap64(q.number)} : 128'(number_part);
        piece_bytes = 5'd8;
        piece_number = !q.bin;
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
      F_TEXT: done = piece_ready && text_valid && text_last;
      F_NUMBER: done = piece_ready && (q.bin || (done_a && last_a));
      F_EXTRAS: done = piece_ready && bare;
      default: done = 1'b0;
    endcase
  end
  assign key_ready = state == F_DROP || ((state == F_FIRST || state == F_KEY) && piece_ready);
  assign value_ready = state == F_VALUE && piece_ready;
  assign starts_cas = state == F_FLAGS && sent && last_a && q.ret_cas;
  assign take_a = sent && !of_size && (state == F_FLAGS || state == F_CAS || state == F_NUMBER);

  state_t value_state;
  assign value_state = no_value ? F_TAIL : F_VALUE;

  always_ff @(posedge clk) begin
    if (load) begin
      q <= d.result;
      status <= d.status;
      text <= d.text;
      number_below <= d.number_below;
      cas_below <= d.cas_below;
      text_follows <= d.text_follows;
      body_size <= d.text_follows ? {6'd0, chosen_of(SIZES, d.text)} : d.body;
      bare <= d.bare;
      has_extras <= d.has_extras;
      has_cas <= d.has_cas;
      shows_key <= d.shows_key;
      no_value <= d.result.vlen == 12'd0;
      key_left <= d.result.kbeats;
      last_key_word <= d.last_key_word;
      value_left <= d.result.vbeats;
      last_value_word <= d.last_value_word;
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
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      state <= F_IDLE;
    end else if (d_ready) begin
      state <= d_valid ? d.first : F_IDLE;
    end else begin
      case (state)
        // Keys that have been forwarded although the reply does not show them.
        F_DROP: if (key_valid && last_key_word) state <= text_follows ? F_TEXT : F_SKIP;
        F_FIRST: if (sent) state <= last_key_word ? F_FLAGS : F_KEY;
        F_KEY: if (sent && last_key_word) state <= q.bin ? F_VALUE : F_FLAGS;
        F_FLAGS: if (sent && last_a) state <= !one_digit ? F_SIZE : q.ret_cas ? F_CAS : value_state;
        F_SIZE: if (sent) state <= q.ret_cas ? F_CAS : value_state;
        F_CAS: if (sent && last_a) state <= value_state;
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
  assign unused = (^q.kbeats) ^ (^q.vbeats);
endmodule
